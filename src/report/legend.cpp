// SPDX-License-Identifier: Apache-2.0
#include "report/legend.h"

#include <algorithm>

#include "report/charts/chart.h"

namespace mrrope::report {

namespace {

struct Row {
  bool (*used)(const RunRecord&);
  const char* name;
  const char* meaning;
};

bool always(const RunRecord&) { return true; }
bool with_verdict(const RunRecord& r) { return !r.table.verdicts.empty(); }
bool by_perplexity(const RunRecord& r) { return with_verdict(r) || r.search || r.sweep; }
bool by_needles(const RunRecord& r) { return !r.table.answers.empty() || r.search; }
bool by_search(const RunRecord& r) { return r.search.has_value(); }
bool by_sweep(const RunRecord& r) { return r.sweep.has_value(); }
bool elastic(const RunRecord& r) {
  return std::any_of(r.methods.begin(), r.methods.end(),
                     [](const RecordedMethod& m) { return is_elastic(m.method); });
}

constexpr Row kTerms[] = {
    {always, "window", "The longest text, in tokens, that the model was trained on."},
    {always, "untouched (none)", "The model as it was shipped, without an extension."},
    {always, "+-",
     "One standard error over documents (for needles: over needles). The true value is within two "
     "of them about 19 times in 20."},
    {by_perplexity, "perplexity",
     "How surprised the model is by the next token, on average; lower is better. 1 is perfect, and "
     "N is as bad as guessing among N tokens."},
    {with_verdict, "band",
     "Perplexity of only those tokens between one length and the next. It shows a collapse that "
     "the average over all tokens hides."},
    {with_verdict, "good to / holds to",
     "The longest length up to which every band stays within 25 % of the perplexity of the "
     "untouched model in its window, and no band is clearly above (10 % and two standard errors) "
     "the best band before it."},
    {with_verdict, "cost inside the window",
     "How much the extension raises the perplexity of short texts, in percent."},
    {with_verdict, "KL divergence",
     "How far the predictions inside the window are from those of the untouched model, in nats; 0 "
     "is identical."},
    {with_verdict, "significant (p < 0.05, Holm)",
     "A difference this large would be rare by chance. p is from a paired t test over documents; "
     "Holm's correction accounts for comparing many methods at once."},
    {by_needles, "needle",
     "A sentence planted in a long text that the model must find again; depth is its place, from "
     "0 % (start) to 100 % (end)."},
    {by_needles, "recall (ROUGE-1)", "The share of the words of the answer that the model wrote."},
    {always, "pair",
     "Two numbers of a query or key that RoPE rotates together; pair 0 turns fastest."},
    {always, "plan, factor",
     "A plan divides the rotation speed of each pair by a factor: 1 leaves the pair as trained."},
    {always, "low, high",
     "The ramp boundaries: pairs before low keep their speed, pairs from high on are slowed in "
     "full."},
    {elastic, "elastic, rung",
     "An elastic method uses the untouched model inside its window and then climbs through plans "
     "of growing scale; each of these is a rung."},
    {by_search, "pass", "One reading of the whole search set at the wanted length."},
    {by_search, "objective",
     "What the search minimizes: mean log-perplexity minus a weight times the log-probability of "
     "planted answers."},
    {by_search, "front", "Plans that no other plan beats in both perplexity and retrieval."},
    {by_search, "held-out", "Documents that the search never saw; the proof uses only these."},
    {by_sweep, "beta_fast, beta_slow",
     "The parameters of YaRN that give the same low and high: turns a pair makes in the window."},
};

}  // namespace

std::vector<Term> terms_of(const std::vector<RunRecord>& records) {
  std::vector<Term> out;
  for (const Row& row : kTerms) {
    const bool used = std::any_of(records.begin(), records.end(), [&](const RunRecord& r) {
      return r.problem.empty() && row.used(r);
    });
    if (used) out.push_back({row.name, row.meaning});
  }
  return out;
}

}  // namespace mrrope::report
