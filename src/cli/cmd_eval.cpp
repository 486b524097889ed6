// SPDX-License-Identifier: Apache-2.0
// mrrope eval: how far a model holds under each method.
#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/app.h"
#include "cli/engine_options.h"
#include "cli/options.h"
#include "core/text.h"
#include "eval/documents.h"
#include "eval/perplexity.h"
#include "formats/digest.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct EvalFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  LocalOptions engine;
  std::vector<std::string> lengths;
  std::vector<std::string> text;
  DocumentOptions documents;
  std::string select = "first";
  std::int64_t stride = 0;
  int kl_positions = PerplexityOptions{}.kl_positions;
  std::string out;
  bool json = false;
  bool dry_run = false;
};

// What is asked for, found out before the model is loaded.
struct Job {
  Model model;
  std::int64_t ctx = 0;
  std::vector<std::int64_t> lengths;
  std::vector<MethodUnderTest> methods;
};

// Half the window, the window, and twice as much each time up to ctx.
std::vector<std::int64_t> usual_lengths(std::int64_t window, std::int64_t ctx) {
  std::vector<std::int64_t> out;
  for (std::int64_t n = std::max<std::int64_t>(2, window / 2); n < ctx; n *= 2) out.push_back(n);
  out.push_back(ctx);
  return out;
}

Job prepare(const EvalFlags& flags) {
  Subject subject = resolve(flags.subject);
  if (!subject.model) {
    throw Error(ErrorKind::usage, "an evaluation runs a model", "give a GGUF file");
  }
  Job job;
  job.model = *subject.model;
  job.model.geometry = subject.geometry;
  const std::int64_t window = subject.geometry.train_length;
  for (const std::string& text : flags.lengths) job.lengths.push_back(parse_length(text));
  ExtensionFlags extension = flags.extension;
  if (!extension.ctx.empty()) {
    job.ctx = parse_length(extension.ctx);
  } else if (!job.lengths.empty()) {
    job.ctx = *std::max_element(job.lengths.begin(), job.lengths.end());
    if (!extension.scale) extension.ctx = cat(job.ctx);
  } else {
    throw Error(ErrorKind::usage, "how long?", "give --ctx 8k, or --lengths 512,1k,2k,4k,8k");
  }
  if (job.lengths.empty()) job.lengths = usual_lengths(window, job.ctx);
  if (*std::max_element(job.lengths.begin(), job.lengths.end()) > job.ctx) {
    throw Error(ErrorKind::usage, cat("a length lies past --ctx ", job.ctx),
                "give a larger --ctx, or shorter --lengths");
  }
  if (extension.methods.empty() && extension.plan_files.empty()) {
    extension.methods = {"none", "yarn", "uni", "pro"};
  }
  std::vector<Candidate> candidates = resolve(extension, job.model.geometry);
  if (auto vendor = vendor_plan(job.model, flags.subject.replace_scaling, job.ctx)) {
    candidates.push_back(*vendor);
  }
  for (const Candidate& c : candidates) {
    const auto* plan = std::get_if<Plan>(&c.content);
    job.methods.push_back(
        {c.name, plan ? make_ladder(*plan, job.ctx) : std::get<Ladder>(c.content)});
  }
  return job;
}

void print_dry_run(const Job& job, const LocalOptions& engine, LanguageModel& model,
                   const DocumentSet& set) {
  const std::int64_t longest = *std::max_element(job.lengths.begin(), job.lengths.end());
  std::vector<std::int64_t> passes;
  for (const Document& d : set.documents) {
    const auto tokens = std::int64_t(model.tokenize(d.text, true, false).size());
    for (std::size_t i = 0; i < job.methods.size(); ++i)
      passes.push_back(std::min(tokens, longest));
  }
  std::int64_t total = 0;
  for (const std::int64_t n : passes) total += n;
  std::cout << set.documents.size() << " documents x " << job.methods.size() << " methods, "
            << total << " tokens\n"
            << memory_text(job.model, engine) << "\n";
  model.use(job.methods.front().ladder);
  std::cout << "about " << duration_text(estimate_seconds(model, passes)) << "\n";
}

void run_ppl(EvalFlags flags) {
  const Job job = prepare(flags);
  if (flags.text.empty()) {
    throw Error(ErrorKind::usage, "on which texts?",
                "give --text FILE... (plain, .jsonl, also .gz .xz .zst, or folders)");
  }
  LocalOptions engine = flags.engine;
  engine.context = job.ctx;
  // The untouched model and a method are compared logit by logit, each with its own timeline.
  engine.timelines = 2;
  const auto model = open_local(job.model, engine);

  DocumentOptions choice = flags.documents;
  choice.select = flags.select == "random" ? Select::random : Select::first;
  const std::int64_t longest = *std::max_element(job.lengths.begin(), job.lengths.end());
  if (choice.samples > 0) {
    choice.keep = [&](const Document& d) {
      return std::int64_t(model->tokenize(d.text, true, false).size()) >= longest;
    };
  }
  const DocumentSet set = read_documents({flags.text.begin(), flags.text.end()}, choice);
  for (const std::string& line : set.notes()) note(line);
  if (flags.dry_run) return print_dry_run(job, engine, *model, set);

  catch_interrupts();
  Progress progress(stderr_writer(), stderr_is_terminal());
  const RunInfo info{command_line(), model_digest(job.model.files), choice.seed};
  RunFolder folder = flags.out.empty() ? RunFolder() : RunFolder(flags.out, info);
  PerplexityOptions options;
  options.lengths = job.lengths;
  options.stride = flags.stride;
  options.kl_positions = flags.kl_positions;
  const PerplexityResults results =
      run_perplexity(*model, job.methods, set.documents, options, folder, progress);
  for (const std::string& line : folder.notes()) note(line);
  if (flags.json) {
    std::cout << results_text(to_json(results));
  } else {
    std::cout << to_text(results);
  }
  if (!flags.out.empty()) note(cat("wrote ", flags.out, "/results.json"));
}

}  // namespace

void add_eval(CLI::App& app) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* verb = app.add_subcommand("eval", "Measure how far a model holds under each method");
  verb->require_subcommand(1);
  CLI::App* ppl = verb->add_subcommand("ppl", "Perplexity at every length, one pass per document");
  add_subject(*ppl, flags->subject);
  add_extension(*ppl, flags->extension);
  ppl->add_option("--lengths", flags->lengths, "Lengths to report, e.g. 512,1k,2k,4k,8k")
      ->type_name("N,...")
      ->delimiter(',');
  ppl->add_option("--text", flags->text, "Texts: plain, .jsonl, also .gz .xz .zst, or folders")
      ->type_name("FILE")
      ->take_all();
  ppl->add_option("--field", flags->documents.field, "Field of a .jsonl line that holds the text")
      ->type_name("NAME")
      ->capture_default_str();
  ppl->add_option("--samples", flags->documents.samples,
                  "Documents to use, of those that reach the longest length; 0: all documents")
      ->type_name("N")
      ->capture_default_str();
  ppl->add_option("--select", flags->select, "Which of them: first or random")
      ->type_name("HOW")
      ->check(CLI::IsMember({"first", "random"}))
      ->capture_default_str();
  ppl->add_option("--seed", flags->documents.seed, "Seed of the random choice")
      ->type_name("N")
      ->capture_default_str();
  ppl->add_option("--stride", flags->stride, "Slide windows of each length by N tokens instead")
      ->type_name("N");
  ppl->add_option("--kl-positions", flags->kl_positions,
                  "Positions per document at which the divergence from none is measured")
      ->type_name("N")
      ->capture_default_str();
  add_engine(*ppl, flags->engine);
  ppl->add_option("-o,--out", flags->out, "Folder for run.json, journal.jsonl and results.json")
      ->type_name("DIR");
  ppl->add_flag("--json", flags->json, "Print results as JSON");
  ppl->add_flag("--dry-run", flags->dry_run, "Say what it would take, and stop");
  ppl->footer(
      "Examples:\n"
      "  mrrope eval ppl model.gguf --methods none,yarn,uni,pro --ctx 8k --text docs/ -o run1\n"
      "  mrrope eval ppl model.gguf --plan tuned.json --lengths 4k,16k,32k --text a.jsonl.xz\n"
      "A run with -o that was interrupted goes on when the same command is given again.");
  ppl->callback([flags] { run_ppl(*flags); });
}

}  // namespace mrrope::cli
