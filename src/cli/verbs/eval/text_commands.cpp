// SPDX-License-Identifier: Apache-2.0
// The tasks of mrrope eval on texts: perplexity at every length, and what a model finds by length
// and depth.
#include <iostream>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "cli/args/presets.h"
#include "eval/tasks/needle/needle.h"
#include "eval/tasks/perplexity/perplexity.h"

namespace mrrope::cli {

namespace {

// ---- ppl

struct PplFlags {
  EvalFlags eval;
  std::vector<std::string> text;
  eval::DocumentOptions documents;
  std::string select = "first";
  std::string min_tokens;
  int kl_positions = eval::PerplexityOptions{}.kl_positions;
};

// Half the window, the window, and doubling up to ctx.
std::vector<std::int64_t> from_half(std::int64_t window, std::int64_t ctx) {
  return eval::doubling(std::max<std::int64_t>(2, window / 2), ctx);
}

void print_dry_run(const EvalJob& job, const eval::Target& target, const eval::DocumentSet& set) {
  std::vector<std::int64_t> passes;  // each ends at the longest length that the document has
  std::int64_t longest = 0;
  std::int64_t total = 0;
  for (const eval::Document& d : set.documents) {
    const auto tokens = std::int64_t(target.tokenizer().tokenize(d.text, true, false).size());
    longest = std::max(longest, tokens);
    const std::int64_t reached = eval::longest_within(job.lengths, tokens);
    if (reached > 0) passes.insert(passes.end(), job.methods.size(), reached);
    total += reached * std::int64_t(job.methods.size());
  }
  eval::check_reach(longest, job.lengths);
  std::cout << set.documents.size() << " documents x " << job.methods.size() << " methods, "
            << total << " tokens\n";
  print_local_cost(job, target, passes);
}

void run_ppl(const PplFlags& flags) {
  EvalJob job = prepare_eval(flags.eval, from_half);
  const std::int64_t min_tokens = flags.min_tokens.empty() ? 0 : parse_length(flags.min_tokens);
  const auto comparable = [](const auto& m) { return m.untouched() || m.elastic(); };
  if (!find_by(job.methods, comparable)) {
    note("no verdict will be given: it compares with the unmodified model; add none to --method");
  }
  note_precision(job.model, job.engine);
  job.places.reads = flags.text;
  const OpenModel model = open_model(job);
  const eval::Target target = model.target();

  eval::DocumentOptions choice = flags.documents;
  choice.select = flags.select == "random" ? eval::Select::random : eval::Select::first;
  choice.min_tokens = std::max(min_tokens, choice.samples > 0 ? job.longest : 0);
  choice.tokens = [&](const eval::Document& d) {
    return std::int64_t(target.tokenizer().tokenize(d.text, true, false).size());
  };
  const eval::DocumentSet set = read_texts(flags.text, choice);
  if (set.documents.size() < choice.samples) {
    note(cat("only ", set.documents.size(), " of the ", choice.samples,
             " requested documents: no others have ", choice.min_tokens, " tokens or more"));
  }
  eval::PerplexityOptions options;
  options.lengths = job.lengths;
  options.kl_positions = flags.kl_positions;
  options.min_tokens = min_tokens;
  options.random = choice.select == eval::Select::random;
  if (flags.eval.dry_run) {
    check_methods(target, job.methods, eval::sorted_lengths(options.lengths));
    return print_dry_run(job, target, set);
  }
  run_eval(
      flags.eval, job, target, choice.seed, [&](eval::RunFolder& folder, eval::Progress& progress) {
        return run_perplexity(*model.local, job.methods, set.documents, options, folder, progress);
      });
}

// ---- needle

struct NeedleFlags {
  EvalFlags eval;
  std::vector<double> depths;
  std::vector<std::string> haystack;
  eval::DocumentOptions documents;
  std::string form;
  std::optional<std::string> needle, question, answer;
  int answer_tokens = 0;
  std::size_t samples = 1;
  std::size_t questions = 1;
  std::uint64_t seed = 1;
};

// Eight equal steps: half of 4k is a quarter of 8k, so the two share a prefix.
std::vector<std::int64_t> equal_steps(std::int64_t /*window*/, std::int64_t ctx) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t k = 1; k <= 8; ++k) lengths.push_back(ctx * k / 8);
  return lengths;
}

void print_dry_run(const EvalJob& job, const eval::Target& target,
                   const std::vector<eval::Document>& documents,
                   const eval::NeedleOptions& options) {
  check_needle(target, job.methods, options);
  const auto haystacks = make_haystacks(target.tokenizer(), documents, job.longest, options.samples,
                                        options.form.name == eval::kKamradt);
  std::int64_t tokens = 0;
  std::int64_t naive = 0;
  for (std::size_t s = 0; s < options.samples; ++s) {
    for (const eval::NeedleTree& tree :
         plan_sample(target.tokenizer(), options, haystacks[s % haystacks.size()].tokens, s)) {
      for (const eval::MethodUnderTest& method : job.methods) {
        tokens += shares(options, method) ? tree.tokens : tree.naive_tokens;
        naive += tree.naive_tokens;
      }
    }
  }
  const std::size_t methods = job.methods.size();
  const std::size_t needles = options.samples * options.depths.size() * options.lengths.size();
  std::cout << needles << " needles x " << methods << " methods, " << tokens << " of " << naive
            << " tokens (prefixes are shared), form " << options.form.name << "\n";
  const std::vector<std::int64_t> passes(std::size_t(tokens / job.longest + 1), job.longest);
  print_local_cost(job, target, passes);
}

std::vector<eval::Document> haystack_of(const NeedleFlags& flags, const EvalJob& job,
                                        const eval::Target& target,
                                        const eval::NeedleOptions& options) {
  if (options.form.name == eval::kKamradt && flags.haystack.empty()) {
    note("no --text given: the needle is hidden in generated prose");
    return eval::made_essays(target.tokenizer(), job.longest, options.samples);
  }
  std::vector<eval::Document> documents = read_texts(flags.haystack, flags.documents).documents;
  if (options.form.name == eval::kKamradt) {
    const auto made = make_haystacks(target.tokenizer(), documents, job.longest, 1, true);
    if (const std::string& id = made.front().id; id.find(" x ") != std::string::npos) {
      note(cat("the haystack is too short for ", job.longest, " tokens and is repeated"));
    }
  }
  return documents;
}

void run_needle_command(const NeedleFlags& flags) {
  std::optional<eval::NeedleTexts> own;
  if (flags.needle || flags.question || flags.answer) {
    own = eval::NeedleTexts{flags.needle.value_or(""), flags.question.value_or(""),
                            flags.answer.value_or("")};
    check_texts(*own);
  }
  const bool together = flags.questions > 1;
  refuse_if(together && !flags.depths.empty(),
            "--questions spreads its needles over the text, and --depths says where they are",
            "leave out one of them");
  EvalJob job = prepare_eval(flags.eval, equal_steps);
  job.engine.timelines = together ? 1 : 3;  // trunk, branch, question
  extend(job.places.reads, flags.haystack);
  const OpenModel model = open_model(job);
  const eval::Target target = model.target();

  eval::NeedleOptions options;
  options.lengths = eval::sorted_lengths(job.lengths);
  options.together = together;
  options.depths = flags.depths.empty() ? eval::usual_depths(flags.questions) : flags.depths;
  options.samples = flags.samples;
  options.seed = flags.seed;
  options.form = make_form(target.tokenizer(), flags.form, own, flags.answer_tokens);

  const std::vector<eval::Document> haystack = haystack_of(flags, job, target, options);
  if (flags.eval.dry_run) return print_dry_run(job, target, haystack, options);

  run_eval(flags.eval, job, target, options.seed,
           [&](eval::RunFolder& folder, eval::Progress& progress) {
             return run_needle(target, job.methods, haystack, options, folder, progress);
           });
}

}  // namespace

void add_eval_ppl(CLI::App& eval) {
  const auto [verb, flags] = add_verb<PplFlags>(eval, "ppl", run_ppl);
  add_eval_subject(verb, flags.eval);
  add(verb, "--text", flags.text);
  add(verb, "--field", flags.documents.field);
  add(verb, "--documents", flags.documents.samples);
  add(verb, "--min-tokens", flags.min_tokens);
  add(verb, "--select", flags.select);
  add(verb, "--seed", flags.documents.seed);
  add(verb, "--kl-positions", flags.kl_positions);
  add_eval_output(verb, flags.eval, Runs::local_only);
}

void add_eval_needle(CLI::App& eval) {
  const auto [verb, flags] = add_verb<NeedleFlags>(eval, "needle", run_needle_command);
  add_eval_subject(verb, flags.eval);
  add(verb, "--depths", flags.depths);
  add(verb, "--text", flags.haystack);
  add(verb, "--field", flags.documents.field);
  add(verb, "--form", flags.form)->check(among({"planted", "completion", "chat", eval::kKamradt}));
  add(verb, "--needle", flags.needle);
  add(verb, "--question", flags.question);
  add(verb, "--answer", flags.answer);
  add(verb, "-n,--predict", flags.answer_tokens)->check(in_range(1, kMostCounted));
  add(verb, "--samples", flags.samples);
  add(verb, "--questions", flags.questions)->check(in_range(std::size_t(1), eval::kMaxNeedles));
  add(verb, "--seed", flags.seed);
  add_eval_output(verb, flags.eval);
}

}  // namespace mrrope::cli
