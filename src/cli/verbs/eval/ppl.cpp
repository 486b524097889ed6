// SPDX-License-Identifier: Apache-2.0
// mrrope eval ppl: perplexity at every length.
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/engine_options.h"
#include "cli/args/eval_options.h"
#include "cli/args/precision.h"
#include "eval/tasks/perplexity/perplexity.h"
#include "eval/text/documents.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct PplFlags {
  EvalFlags eval;
  std::vector<std::string> text;
  eval::DocumentOptions documents;
  std::string select = "first";
  std::string least;
  std::int64_t stride = 0;
  int kl_positions = eval::PerplexityOptions{}.kl_positions;
};

// Half the window, the window, and doubling up to ctx.
std::vector<std::int64_t> usual_lengths(std::int64_t window, std::int64_t ctx) {
  std::vector<std::int64_t> out;
  for (std::int64_t n = std::max<std::int64_t>(2, window / 2); n < ctx; n *= 2) out.push_back(n);
  out.push_back(ctx);
  return out;
}

// Tokens of each pass over a document: one that ends at the longest length it has, or with a stride
// all windows of each length.
std::vector<std::int64_t> passes_over(std::int64_t tokens, const std::vector<std::int64_t>& lengths,
                                      std::int64_t stride) {
  std::vector<std::int64_t> passes;
  std::int64_t reached = 0;
  for (const std::int64_t length : lengths) {
    if (length > tokens) continue;
    reached = std::max(reached, length);
    if (stride == 0) continue;
    const std::int64_t windows = 1 + (tokens - length + stride - 1) / stride;
    passes.insert(passes.end(), std::size_t(windows), length);
  }
  if (stride == 0 && reached > 0) passes.push_back(reached);
  return passes;
}

void print_dry_run(const EvalJob& job, TimelineModel& model, const eval::DocumentSet& set,
                   std::int64_t stride) {
  std::vector<std::int64_t> passes;
  std::int64_t most = 0;
  for (const eval::Document& d : set.documents) {
    const auto tokens = std::int64_t(model.tokenize(d.text, true, false).size());
    most = std::max(most, tokens);
    const std::vector<std::int64_t> once = passes_over(tokens, job.lengths, stride);
    for (std::size_t i = 0; i < job.methods.size(); ++i) {
      passes.insert(passes.end(), once.begin(), once.end());
    }
  }
  eval::check_reach(most, job.lengths);
  std::int64_t total = 0;
  for (const std::int64_t n : passes) total += n;
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
  EvalJob job = prepare_eval(flags.eval, usual_lengths);
  // The untouched model and a method are compared logit by logit, each with its own timeline.
  job.engine.timelines = 2;
  const std::int64_t least = flags.least.empty() ? 0 : parse_length(flags.least);
  if (std::none_of(job.methods.begin(), job.methods.end(),
                   [](const eval::MethodUnderTest& m) { return m.untouched() || m.elastic(); })) {
    note("no verdict will be given: it compares with the untouched model; add none to --methods");
  }
  note_precision(job.model, job.engine);
  job.places.reads = flags.text;
  const auto model = std::move(open_model(job).local);

  eval::DocumentOptions choice = flags.documents;
  choice.select = flags.select == "random" ? eval::Select::random : eval::Select::first;
  choice.least = std::max(least, choice.samples > 0 ? job.longest : 0);
  choice.tokens = [&](const eval::Document& d) {
    return std::int64_t(model->tokenize(d.text, true, false).size());
  };
  const eval::DocumentSet set = read_texts(flags.text, choice);
  if (set.documents.size() < choice.samples) {
    note(cat("only ", set.documents.size(), " of the ", choice.samples,
             " requested documents: no others have ", choice.least, " tokens or more"));
  }
  eval::PerplexityOptions options;
  options.lengths = job.lengths;
  options.stride = flags.stride;
  options.kl_positions = flags.kl_positions;
  options.min_tokens = least;
  options.random = choice.select == eval::Select::random;
  if (flags.eval.dry_run) {
    check_perplexity(*model, job.methods, options);
    return print_dry_run(job, *model, set, options.stride);
  }
  run_eval(flags.eval, job, *model, choice.seed,
           [&](eval::RunFolder& folder, eval::Progress& progress) {
             return task_results(
                 run_perplexity(*model, job.methods, set.documents, options, folder, progress));
           });
}

}  // namespace

void add_eval_ppl(CLI::App& eval) {
  auto flags = std::make_shared<PplFlags>();
  CLI::App* ppl = eval.add_subcommand("ppl", "Perplexity at every length, one pass per document");
  add_eval_subject(*ppl, flags->eval);
  ppl->add_option("--text", flags->text, "Texts: plain, .jsonl, also .gz .xz .zst, or folders")
      ->type_name("FILE")
      ->take_all();
  ppl->add_option("--field", flags->documents.field, "Field of a .jsonl line that holds the text")
      ->type_name("NAME")
      ->capture_default_str();
  ppl->add_option(
         "--samples", flags->documents.samples,
         "Number of documents, among those that reach the longest length; 0: all documents")
      ->type_name("N")
      ->check(CLI::Range(0, kMostCounted))
      ->capture_default_str();
  ppl->add_option("--min-tokens", flags->least,
                  "Only documents with at least this many tokens, e.g. 128k")
      ->type_name("N");
  ppl->add_option("--select", flags->select, "Which of them to use: first or random")
      ->type_name("HOW")
      ->check(CLI::IsMember({"first", "random"}))
      ->capture_default_str();
  ppl->add_option("--seed", flags->documents.seed, "Seed of the random choice")
      ->type_name("N")
      ->capture_default_str();
  ppl->add_option("--stride", flags->stride,
                  "Use sliding windows of each length that move by N tokens")
      ->type_name("N");
  ppl->add_option("--kl-positions", flags->kl_positions,
                  "Positions per document at which the KL divergence from none is measured")
      ->type_name("N")
      ->check(CLI::Range(0, kMostCounted))
      ->capture_default_str();
  add_eval_output(*ppl, flags->eval);
  // An endpoint is refused with the reason, so the help does not offer one.
  CLI::Option* endpoint = ppl->get_option("--endpoint");
  for (CLI::Option* option : ppl->get_options()) option->remove_excludes(endpoint);
  for (const char* name : kEndpointFlags) {
    ppl->get_option(name)->group("");
    ppl->get_option(name)->remove_needs(endpoint);
  }
  ppl->footer(
      "Examples:\n"
      "  mrrope eval ppl model.gguf --methods none,yarn,pro,auto --ctx 8k --text docs/ -o run1\n"
      "  mrrope eval ppl model.gguf --plan tuned.json --lengths 4k,16k,32k --text a.jsonl.xz\n"
      "A run with -o that was interrupted resumes when the same command is given again.");
  ppl->callback([flags, ppl] {
    refuse_endpoint(*ppl, !flags->eval.remote.url.empty());
    run_ppl(*flags);
  });
}

}  // namespace mrrope::cli
