// SPDX-License-Identifier: Apache-2.0
#include "cli/args/sample_options.h"

#include <iostream>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/engine_options.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

// The first prompt of every set, between separator lines.
void show_prompts(const eval::SampleSuite& suite) {
  for (const eval::SampleSet& set : suite.sets) {
    if (set.count == 0) continue;
    const eval::Sample sample = set.make(0);
    std::cout << "=== " << set.task << " at " << set.length << ", sample " << sample.id << ", "
              << sample.prompt.size() << " tokens, room for " << set.answer_tokens << " ===\n"
              << sample.text << "\n=== expected:";
    for (const std::string& e : sample.expected) std::cout << " [" << e << "]";
    std::cout << " ===\n";
  }
}

void print_dry_run(const EvalJob& job, const eval::Target& target, const eval::SampleSuite& suite) {
  check_samples(target, job.methods, suite);
  std::vector<std::int64_t> passes;
  std::int64_t total = 0;
  for (const eval::SampleSet& set : suite.sets) {
    const std::size_t prompts = set.count * job.methods.size();
    passes.insert(passes.end(), prompts, set.length);
    total += std::int64_t(prompts) * set.length;
  }
  std::cout << suite.sets.size() << (suite.sets.size() == 1 ? " task x " : " tasks and lengths x ")
            << job.methods.size() << (job.methods.size() == 1 ? " method, " : " methods, ")
            << passes.size() << " prompts, at most " << total
            << " tokens (shared prefixes are computed once)\n";
  print_local_cost(job, target, passes, " at most");
}

}  // namespace

void add_sample_flags(CLI::App& task, SampleFlags& flags) {
  add_default(task, "--chat", flags.frame.chat, "WHEN",
              "Use the model's chat template: on, off, or auto (if it has one)")
      ->check(CLI::IsMember({"on", "off", "auto"}));
  add_default(task, "--answer-prefix", flags.prefix, "WHEN",
              "Give the model the beginning of the answer: on or off")
      ->check(CLI::IsMember({"on", "off"}));
  add_default(task, "--bos", flags.bos, "WHEN", "Start with BOS if the model has one: on or off")
      ->check(CLI::IsMember({"on", "off"}));
  add_value(task, "--prompts", flags.prompts, "FILE",
            "JSON file with prompts that replace built-in ones");
  task.add_flag("--show-prompt", flags.show_prompt,
                "Print the final prompt of the first sample of each task, and stop");
}

eval::FrameOptions frame_options(const SampleFlags& flags) {
  eval::FrameOptions options = flags.frame;
  options.prefix = flags.prefix == "on";
  options.bos = flags.bos == "on";
  return options;
}

eval::Prompts chosen_prompts(SampleFlags& flags, const std::string& used) {
  if (flags.prompts.empty()) return eval::builtin_prompts();
  eval::Prompts prompts = eval::read_prompts(flags.prompts, &flags.prompts_digest);
  if (prompts_identity(prompts, used) == prompts_identity(eval::builtin_prompts(), used)) {
    throw Error(ErrorKind::usage,
                cat("--prompts ", flags.prompts, " changes nothing: this run uses prompts named ",
                    used, ", and the file replaces none of them"),
                cat("give the file a prompt of that name, or leave out --prompts"));
  }
  return prompts;
}

OpenModel open_for_samples(EvalJob& job, const std::vector<std::string>& reads) {
  job.places.reads.insert(job.places.reads.end(), reads.begin(), reads.end());
  job.engine.timelines = 1;
  return open_model(job);
}

void run_suite(const SampleFlags& flags, const EvalJob& job, const eval::Target& target,
               const eval::SampleSuite& suite) {
  if (flags.show_prompt) return show_prompts(suite);
  if (flags.eval.dry_run) return print_dry_run(job, target, suite);
  eval::SampleSuite asked = suite;
  if (!flags.prompts_digest.empty()) asked.settings["prompts_sha256"] = flags.prompts_digest;
  eval::SampleRunOptions options;
  run_eval(flags.eval, job, target, flags.seed,
           [&](eval::RunFolder& folder, eval::Progress& progress) {
             return run_samples(target, job.methods, asked, options, folder, progress);
           });
}

}  // namespace mrrope::cli
