// SPDX-License-Identifier: Apache-2.0
#include "cli/args/sample_options.h"

#include <iostream>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/engine_options.h"

namespace mrrope::cli {

namespace {

LocalOptions engine_options(const EvalJob& job) {
  LocalOptions engine = job.engine;
  engine.timelines = 1;
  return engine;
}

// The first prompt of every set, between lines that no text holds.
void show_prompts(const SampleSuite& suite) {
  for (const SampleSet& set : suite.sets) {
    if (set.count == 0) continue;
    const Sample sample = set.make(0);
    std::cout << "=== " << set.task << " at " << set.length << ", sample " << sample.id << ", "
              << sample.prompt.size() << " tokens, room for " << set.answer_tokens << " ===\n"
              << sample.text << "\n=== expected:";
    for (const std::string& e : sample.expected) std::cout << " [" << e << "]";
    std::cout << " ===\n";
  }
}

void print_dry_run(const EvalJob& job, const Target& target, const SampleSuite& suite) {
  check_samples(target, job.methods, suite, SampleRunOptions{});
  std::vector<std::int64_t> passes;
  std::int64_t total = 0;
  for (const SampleSet& set : suite.sets) {
    const std::size_t prompts = set.count * job.methods.size();
    passes.insert(passes.end(), prompts, set.length);
    total += std::int64_t(prompts) * set.length;
  }
  std::cout << suite.sets.size() << " sets of samples x " << job.methods.size() << " methods, "
            << passes.size() << " prompts, up to " << total
            << " tokens (less what beginnings share)\n";
  if (job.served()) return;
  std::cout << memory_text(job.model, engine_options(job)) << "\n";
  target.timelines()->use(job.methods.front().ladder);
  std::cout << "about " << duration_text(estimate_seconds(*target.timelines(), passes))
            << " at most\n";
}

}  // namespace

void add_sample_flags(CLI::App& task, SampleFlags& flags) {
  task.add_option("--chat", flags.frame.chat,
                  "The model's chat template: on, off, or auto (where it has one)")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->capture_default_str();
  task.add_option("--answer-prefix", flags.prefix, "The beginning of the answer: on or off")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  task.add_option("--bos", flags.bos, "One BOS where the model has one: on or off")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  task.add_option("--prompts", flags.prompts, "JSON file of prompts to use for the built-in ones")
      ->type_name("FILE");
  add_climb(task, flags.eval.engine);
  task.add_flag("--show-prompt", flags.show_prompt,
                "Print the final prompt of the first sample of each task, and stop");
}

FrameOptions frame_options(const SampleFlags& flags) {
  FrameOptions options = flags.frame;
  options.prefix = flags.prefix == "on";
  options.bos = flags.bos == "on";
  return options;
}

Prompts chosen_prompts(const SampleFlags& flags) {
  return flags.prompts.empty() ? builtin_prompts() : read_prompts(flags.prompts);
}

OpenModel open_for_samples(const EvalJob& job) {
  EvalJob one = job;
  one.engine = engine_options(job);
  return open_model(one);
}

void run_suite(const SampleFlags& flags, const EvalJob& job, const Target& target,
               const SampleSuite& suite) {
  if (flags.show_prompt) return show_prompts(suite);
  if (flags.eval.dry_run) return print_dry_run(job, target, suite);
  catch_interrupts();
  Progress progress(stderr_writer(), stderr_is_terminal());
  RunFolder folder = open_folder(flags.eval, job, target, flags.seed);
  SampleRunOptions options;
  options.whole_prompts = flags.eval.engine.climb_last;
  const SampleResults results = run_samples(target, job.methods, suite, options, folder, progress);
  print_results(flags.eval, folder, results_text(to_json(results)), to_text(results));
}

}  // namespace mrrope::cli
