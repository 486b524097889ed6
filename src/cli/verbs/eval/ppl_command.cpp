// SPDX-License-Identifier: Apache-2.0
// mrrope eval ppl: perplexity at every length.
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/eval_options.h"
#include "cli/args/options.h"
#include "cli/args/presets.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "eval/text/documents.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct PplFlags {
  const CLI::App* verb = nullptr;
  EvalFlags eval;
  std::vector<std::string> text;
  eval::DocumentOptions documents;
  std::string select = "first";
  std::string min_tokens;
  int kl_positions = eval::PerplexityOptions{}.kl_positions;
};

// Half the window, the window, and doubling up to ctx.
std::vector<std::int64_t> default_lengths(std::int64_t window, std::int64_t ctx) {
  std::vector<std::int64_t> out;
  for (std::int64_t n = std::max<std::int64_t>(2, window / 2); n < ctx; n *= 2) out.push_back(n);
  out.push_back(ctx);
  return out;
}

void print_dry_run(const EvalJob& job, TimelineModel& model, const eval::DocumentSet& set) {
  std::vector<std::int64_t> passes;  // each ends at the longest length that the document has
  std::int64_t longest = 0;
  std::int64_t total = 0;
  for (const eval::Document& d : set.documents) {
    const auto tokens = std::int64_t(model.tokenize(d.text, true, false).size());
    longest = std::max(longest, tokens);
    std::int64_t reached = 0;
    for (const std::int64_t length : job.lengths) {
      if (length <= tokens) reached = std::max(reached, length);
    }
    if (reached > 0) passes.insert(passes.end(), job.methods.size(), reached);
    total += reached * std::int64_t(job.methods.size());
  }
  eval::check_reach(longest, job.lengths);
  std::cout << set.documents.size() << " documents x " << job.methods.size() << " methods, "
            << total << " tokens\n";
  print_local_cost(job, model, passes);
}

constexpr const char* kEndpointFlags[] = {"--endpoint", "--api", "--parallel", "--timeout",
                                          "--vocab"};

void refuse_endpoint(const CLI::App& ppl, bool endpoint) {
  for (const char* name : kEndpointFlags) {
    if (ppl.count(name) == 0) continue;
    throw Error(endpoint ? ErrorKind::unsupported : ErrorKind::usage,
                cat(name,
                    " is for an endpoint, which only answers prompts; perplexity needs the "
                    "probability of every token of a text"),
                cat("remove ", name,
                    " and give a model file, or measure the endpoint with eval needle, ruler, "
                    "infinitebench or longbench-v2"));
  }
}

void run_ppl(const PplFlags& flags) {
  refuse_endpoint(*flags.verb, !flags.eval.remote.url.empty());
  EvalJob job = prepare_eval(flags.eval, default_lengths);
  // The untouched model and a method are compared logit by logit, each with its own timeline.
  job.engine.timelines = 2;
  const std::int64_t min_tokens = flags.min_tokens.empty() ? 0 : parse_length(flags.min_tokens);
  if (std::none_of(job.methods.begin(), job.methods.end(),
                   [](const eval::MethodUnderTest& m) { return m.untouched() || m.elastic(); })) {
    note("no verdict will be given: it compares with the untouched model; add none to --method");
  }
  note_precision(job.model, job.engine);
  job.places.reads = flags.text;
  const auto model = std::move(open_model(job).local);

  eval::DocumentOptions choice = flags.documents;
  choice.select = flags.select == "random" ? eval::Select::random : eval::Select::first;
  choice.min_tokens = std::max(min_tokens, choice.samples > 0 ? job.longest : 0);
  choice.tokens = [&](const eval::Document& d) {
    return std::int64_t(model->tokenize(d.text, true, false).size());
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
    check_methods(*model, job.methods, eval::sorted_lengths(options.lengths));
    return print_dry_run(job, *model, set);
  }
  run_eval(flags.eval, job, *model, choice.seed,
           [&](eval::RunFolder& folder, eval::Progress& progress) {
             return run_perplexity(*model, job.methods, set.documents, options, folder, progress);
           });
}

}  // namespace

void add_eval_ppl(CLI::App& eval) {
  const auto [verb, flags] =
      add_verb<PplFlags>(eval, "ppl", "Perplexity at every length, one pass per document", run_ppl);
  flags.verb = &verb;
  add_eval_subject(verb, flags.eval);
  add_value(verb, "--text", flags.text, "FILE",
            "Texts: plain, .jsonl, also .gz .xz .zst, or folders");
  add_default(verb, "--field", flags.documents.field, "NAME",
              "Field of a .jsonl line that holds the text");
  add_count(verb, "--documents", flags.documents.samples, 0,
            "Number of documents, among those that reach the longest length; 0: all documents");
  add_value(verb, "--min-tokens", flags.min_tokens, "N",
            "Only documents with at least this many tokens, e.g. 128k");
  add_default(verb, "--select", flags.select, "HOW", "Which of them to use: first or random")
      ->check(CLI::IsMember({"first", "random"}));
  add_default(verb, "--seed", flags.documents.seed, "N", "Seed of the random choice");
  add_count(verb, "--kl-positions", flags.kl_positions, 0,
            "Positions per document at which the KL divergence from none is measured");
  add_eval_output(verb, flags.eval);
  // An endpoint is refused with the reason, so the help does not offer one.
  CLI::Option* endpoint = verb.get_option("--endpoint");
  for (CLI::Option* option : verb.get_options()) option->remove_excludes(endpoint);
  for (const char* name : kEndpointFlags) {
    verb.get_option(name)->group("");
    verb.get_option(name)->remove_needs(endpoint);
  }
  verb.footer(
      "Examples:\n"
      "  mrrope eval ppl model.gguf --method none,yarn,pro,auto --ctx 8k --text docs/ -o run1\n"
      "  mrrope eval ppl model.gguf --ctx 8k --method 'pro(low=5..15,high=30..45/5)' -o map\n"
      "  mrrope eval ppl model.gguf --plan tuned.json --lengths 4k,16k,32k --text a.jsonl.xz\n"
      "A run with -o that was interrupted resumes when the same command is given again.");
}

}  // namespace mrrope::cli
