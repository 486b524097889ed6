// SPDX-License-Identifier: Apache-2.0
#include "report/words.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "report/charts/axis.h"

namespace mrrope {

namespace {

constexpr std::size_t kFew = 8;  // documents or needles

std::string plural(std::size_t n, const std::string& one) {
  return n == 1 ? "1 " + one : cat(n, " ", one, "s");
}

std::string percent_text(double value, int digits) {
  return fixed(value, std::abs(value) < 100 ? digits : 0) + " %";
}

std::size_t index_of(const PerplexityResults& r, std::int64_t length) {
  return std::size_t(std::find(r.lengths.begin(), r.lengths.end(), length) - r.lengths.begin());
}

struct Best {
  const RunRecord* run = nullptr;
  std::size_t row = 0;
  std::int64_t good_to = 0;
  Estimate perplexity;
};

// Longest good_to, then lowest perplexity there; the untouched model is not asked.
Best best_of(const RunGroup& group) {
  Best best;
  for (const RunRecord* run : group.runs) {
    if (!run->perplexity) continue;
    const PerplexityResults& r = *run->perplexity;
    for (std::size_t i = 0; i < r.verdicts.size(); ++i) {
      const Verdict& v = r.verdicts[i];
      if (!v.judged || v.good_to <= r.window || r.rows[i].untouched) continue;
      const Estimate e = r.rows[i].cells[index_of(r, v.good_to)].perplexity;
      const bool better = v.good_to > best.good_to ||
                          (v.good_to == best.good_to && e.value < best.perplexity.value);
      if (best.run == nullptr || better) best = {run, i, v.good_to, e};
    }
  }
  return best;
}

// "; ahead of uni by 3.4 % (p 0.041)", or that it is not shown.
std::vector<std::string> comparisons_of(const Best& best) {
  const PerplexityResults& r = *best.run->perplexity;
  const std::string& own = r.rows[best.row].method;
  std::string ahead;
  std::string behind;
  std::string open;
  for (const Comparison& c : r.comparisons) {
    if (c.length != best.good_to || (c.a != own && c.b != own)) continue;
    const std::string& other = c.a == own ? c.b : c.a;
    const auto row = std::find_if(r.rows.begin(), r.rows.end(),
                                  [&](const PerplexityRow& x) { return x.method == other; });
    if (row == r.rows.end() || row->untouched || c.difference.mean_difference.n < 2) continue;
    // By how much the other is worse.
    const double log =
        c.a == own ? -c.difference.mean_difference.value : c.difference.mean_difference.value;
    const std::string text =
        cat(other, " (", percent_text(100 * std::expm1(log), 1), ", p ",
            c.corrected_p < 0.001 ? std::string("< 0.001") : fixed(c.corrected_p, 3), ")");
    std::string& list = c.corrected_p >= kSignificant ? open : log > 0 ? ahead : behind;
    list += (list.empty() ? "" : ", ") + text;
  }
  std::vector<std::string> out;
  if (!ahead.empty()) out.push_back(cat("It is ahead of ", ahead, "."));
  if (!behind.empty()) {
    out.push_back(cat("It is behind ", behind, ", which hold less far by the rule above."));
  }
  if (!open.empty()) {
    out.push_back(cat("No real difference is shown from ", open,
                      "; percent by which they are above, paired over documents, p by Holm."));
  }
  return out;
}

std::string needles_of(const std::vector<RunRecord>& records, const RunRecord& of,
                       const std::string& method, const std::string& plan) {
  std::string text;
  for (const RunRecord& record : records) {
    if (!record.needle || record.model_digest != of.model_digest) continue;
    const NeedleResults& r = *record.needle;
    for (const NeedleRow& row : r.rows) {
      if (row.method != method || row.plan != plan) continue;
      for (std::size_t l = r.lengths.size(); l-- > 0;) {
        const Estimate& e = row.all[l].contains;
        if (e.n == 0) continue;
        text = cat("It finds ", fixed(100 * e.value, 0),
                   std::isfinite(e.error) ? cat(" +- ", fixed(100 * e.error, 0)) : std::string(),
                   " % of ", plural(e.n, "needle"), " at ", length_text(r.lengths[l]), ".");
        break;
      }
    }
  }
  return text;
}

std::string reason_of(const PerplexityResults& r) {
  for (std::size_t i = 0; i < r.verdicts.size(); ++i) {
    if (!r.verdicts[i].judged) return r.verdicts[i].reason;
  }
  return r.stride > 0 ? "sliding windows leave no bands to judge" : "nothing was measured";
}

VerdictWords words_of(const RunGroup& group, const std::vector<RunRecord>& records) {
  const RunRecord& first = group.front();
  const PerplexityResults& r = *first.perplexity;
  VerdictWords words;
  words.model = first.model;
  const bool open = std::any_of(group.runs.begin(), group.runs.end(),
                                [](const RunRecord* run) { return !run->finished; });
  const std::string so_far = open ? "So far: " : "";
  const Best best = best_of(group);
  if (best.run == nullptr) {
    const bool judged = std::any_of(r.verdicts.begin(), r.verdicts.end(),
                                    [](const Verdict& v) { return v.judged; });
    if (!judged) {
      words.headline = so_far + "no verdict.";
      words.sentences.push_back(cat("Why: ", reason_of(r), "."));
      return words;
    }
    words.headline = cat(so_far, so_far.empty() ? "No" : "no",
                         " method holds beyond the window of ", length_text(r.window), " tokens.");
    for (const Verdict& v : r.verdicts) {
      if (!v.reason.empty()) words.sentences.push_back(cat(v.method, ": ", v.reason, "."));
    }
    return words;
  }
  const PerplexityResults& b = *best.run->perplexity;
  const PerplexityRow& row = b.rows[best.row];
  const Verdict& verdict = b.verdicts[best.row];
  words.method = row.method;
  words.good_to = best.good_to;
  const double times = double(best.good_to) / double(b.window);
  words.headline = cat(so_far, row.method, " holds to ", length_text(best.good_to), " tokens, ",
                       significant(times, 3), " times the window of ", length_text(b.window), ".");
  std::string there = cat("Its perplexity over the first ", length_text(best.good_to),
                          " tokens is ", estimate_text(best.perplexity));
  for (const PerplexityRow& other : b.rows) {
    const Estimate& e = other.cells[index_of(b, best.good_to)].perplexity;
    if (other.untouched && e.n > 0) {
      there += cat("; the untouched model has ", estimate_text(e), " there");
    }
  }
  words.sentences.push_back(there + ".");
  for (std::string& sentence : comparisons_of(best)) words.sentences.push_back(std::move(sentence));
  if (verdict.cost.mean_difference.n > 0) {
    const Estimate cost = verdict.cost.percent();
    words.sentences.push_back(
        cat("At ", length_text(b.reference_length), ", inside the window, it costs ",
            cost.value < 0 ? "" : "+", fixed(cost.value, 1),
            std::isfinite(cost.error) ? cat(" +- ", fixed(cost.error, 1)) : std::string(),
            " % perplexity against the untouched model."));
  }
  const std::string needles = needles_of(records, *best.run, row.method, row.plan);
  if (!needles.empty()) words.sentences.push_back(needles);
  std::string sure = cat("How sure: ", plural(best.perplexity.n, "document"), " at this length");
  sure += best.perplexity.n < 2      ? ", which leaves no error to state."
          : best.perplexity.n < kFew ? ", few; errors are standard errors over documents."
                                     : "; errors are standard errors over documents.";
  words.sentences.push_back(sure);
  if (verdict.to_the_end) {
    words.sentences.push_back("That is the longest length measured: it may hold further.");
  } else if (!verdict.reason.empty()) {
    words.sentences.push_back(cat("Not further: ", verdict.reason, "."));
  }
  return words;
}

}  // namespace

std::string estimate_text(const Estimate& e) {
  if (e.n == 0 || !std::isfinite(e.value)) return "-";
  return value_text(e.value) + (std::isfinite(e.error) ? " +- " + significant(e.error, 2) : "");
}

std::vector<VerdictWords> verdicts_of(const std::vector<RunRecord>& records) {
  std::vector<VerdictWords> out;
  std::set<std::string> judged;
  for (const RunGroup& group : grouped(records)) {
    if (!group.front().perplexity) continue;
    judged.insert(group.front().model_digest);
    out.push_back(words_of(group, records));
  }
  // Models that were asked for needles or other tasks alone.
  for (const RunRecord& record : records) {
    if (!record.problem.empty() || !judged.insert(record.model_digest).second) continue;
    VerdictWords words;
    words.model = record.model;
    words.headline = "No verdict on length: perplexity was not measured.";
    if (record.needle) {
      for (const RecordedMethod& m : record.methods) {
        const std::string found = needles_of(records, record, m.name, m.digest);
        if (!found.empty()) words.sentences.push_back(cat(m.name, ": ", found));
      }
    }
    out.push_back(std::move(words));
  }
  return out;
}

}  // namespace mrrope
