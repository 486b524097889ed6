// SPDX-License-Identifier: Apache-2.0
// mrrope eval ruler: thirteen synthetic tasks at every length.
#include "eval/tasks/ruler/ruler.h"

#include <fstream>
#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/eval_options.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct RulerFlags {
  SampleFlags sample;
  eval::RulerOptions options;
  std::string data;
  std::vector<std::string> qa;
};

// 4k and doubling up to ctx, as in RULER's own tables.
std::vector<std::int64_t> doubling(std::int64_t /*window*/, std::int64_t ctx) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t n = 4096; n < ctx; n *= 2) lengths.push_back(n);
  lengths.push_back(ctx);
  return lengths;
}

// SQuAD's file is an object, HotpotQA's a list.
bool is_squad(const std::string& path) {
  std::ifstream in(path);
  char first = 0;
  return bool(in >> first) && first == '{';
}

void run_ruler(RulerFlags& flags) {
  EvalJob job = prepare_eval(flags.sample.eval, doubling);
  eval::RulerOptions options = flags.options;
  options.lengths = job.lengths;
  options.seed = flags.sample.seed;
  for (const std::string& file : flags.qa) (is_squad(file) ? options.squad : options.hotpot) = file;
  options.prompts = chosen_prompts(flags.sample, "ruler/");
  if (!flags.data.empty() && !flags.sample.prompts.empty()) {
    refuse("--prompts changes nothing: samples of --data have their prompts",
           "leave out --prompts or --data");
  }
  chosen_tasks(options);  // an unknown one is refused before the model is loaded
  std::vector<std::string> reads = flags.qa;
  reads.push_back(flags.data);
  const OpenModel model = open_for_samples(job, reads);
  const eval::Target target = model.target();
  eval::FrameOptions frame_flags = frame_options(flags.sample);
  // RULER's files include their template.
  if (!flags.data.empty() && frame_flags.chat == "auto") frame_flags.chat = "off";
  const eval::PromptFrame frame(target.tokenizer(), frame_flags);
  eval::TokenCounter counter(target.tokenizer(), frame.chat());
  std::vector<std::string> notes;
  const eval::SampleSuite suite = flags.data.empty()
                                      ? make_ruler(frame, counter, options)
                                      : read_ruler(frame, flags.data, options, notes);
  for (const std::string& line : notes) note(line);
  run_suite(flags.sample, job, target, suite);
}

}  // namespace

void add_eval_ruler(CLI::App& eval) {
  auto flags = std::make_shared<RulerFlags>();
  CLI::App* ruler = eval.add_subcommand("ruler", "RULER: 13 tasks of retrieval and tracking");
  add_eval_subject(*ruler, flags->sample.eval);
  add_value(*ruler, "--tasks", flags->options.tasks, "NAME,...",
            "Only these tasks; niah and qa select all tasks of that kind")
      ->delimiter(',');
  add_default(*ruler, "--samples", flags->options.samples, "N",
              "Samples per task and length; RULER uses 500")
      ->check(CLI::Range(1, kMostCounted));
  add_default(*ruler, "--questions", flags->options.questions, "N",
              "niah_multikey: keys asked for in each text, which is read once; RULER asks one")
      ->check(CLI::Range(std::size_t(1), eval::kMaxRulerQuestions));
  add_default(*ruler, "--seed", flags->sample.seed, "N", "Seed of the built-in samples");
  add_value(*ruler, "--data", flags->data, "DIR",
            "Samples made by RULER's own scripts: DIR/LENGTH/TASK/validation.jsonl");
  add_value(*ruler, "--qa", flags->qa, "FILE",
            "SQuAD's dev-v2.0.json for qa_1, or hotpot_dev_distractor_v1.json for qa_2; repeatable")
      ->take_all();
  add_sample_flags(*ruler, flags->sample);
  add_eval_output(*ruler, flags->sample.eval);
  ruler->footer(
      "Examples:\n"
      "  mrrope eval ruler model.gguf --method none,yarn,pro --lengths 4k,8k,16k -o run3\n"
      "  mrrope eval ruler model.gguf --lengths 8k --tasks niah_single_1,vt --show-prompt\n"
      "  mrrope eval ruler model.gguf --lengths 4k,8k --data ruler-data --samples 500 -o run4\n"
      "  mrrope eval ruler --endpoint http://127.0.0.1:8080/v1 --ctx 8k --parallel 32 -o run5\n"
      "A run with -o that was interrupted resumes when the same command is given again.");
  ruler->callback([flags] { run_ruler(*flags); });
}

}  // namespace mrrope::cli
