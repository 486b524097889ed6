// SPDX-License-Identifier: Apache-2.0
// mrrope eval longbench-v2: questions with four choices about long documents.
#include "eval/tasks/longbench/longbench.h"

#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/eval_options.h"
#include "cli/args/sample_options.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct LongbenchFlags {
  SampleFlags sample;
  eval::LongbenchOptions options;
  std::string data, most, longer = "drop";
};

void run_longbench(LongbenchFlags& flags) {
  EvalJob job = prepare_eval(flags.sample.eval, only_ctx);
  if (job.lengths.size() > 1) {
    throw Error(ErrorKind::usage, "LongBench-v2 runs at one length",
                "give --ctx, or one of --lengths");
  }
  eval::LongbenchOptions options = flags.options;
  options.seed = flags.sample.seed;
  options.length = flags.most.empty() ? job.longest : parse_length(flags.most);
  if (options.length > job.ctx) {
    throw Error(ErrorKind::usage,
                cat("--max-tokens ", options.length, " is longer than --ctx ", job.ctx),
                "give a larger --ctx");
  }
  options.truncate = flags.longer == "truncate";
  options.prompts = chosen_prompts(flags.sample, "longbench-v2/" + options.mode);
  const OpenModel model = open_for_samples(job, {flags.data});
  const eval::Target target = model.target();
  eval::FrameOptions frame_flags = frame_options(flags.sample);
  // The authors use no chat template.
  if (options.mode == "letters" && frame_flags.chat == "auto") frame_flags.chat = "off";
  const eval::PromptFrame frame(target.tokenizer(), frame_flags);
  std::vector<std::string> notes;
  const eval::SampleSuite suite =
      read_longbench(target.tokenizer(), frame, flags.data, options, notes);
  for (const std::string& line : notes) note(line);
  run_suite(flags.sample, job, target, suite);
}

}  // namespace

void add_eval_longbench(CLI::App& eval) {
  auto flags = std::make_shared<LongbenchFlags>();
  CLI::App* verb =
      eval.add_subcommand("longbench-v2", "LongBench-v2: multiple choice about long documents");
  add_eval_subject(*verb, flags->sample.eval);
  verb->add_option("--data", flags->data,
                   "data.json of LongBench-v2, or one item per line (.jsonl)")
      ->type_name("FILE")
      ->required();
  verb->add_option("--mode", flags->options.mode,
                   "generate: find the letter in a reply; letters: compare four logits")
      ->type_name("MODE")
      ->check(CLI::IsMember({"generate", "letters"}))
      ->capture_default_str();
  verb->add_option("--max-tokens", flags->most, "Longest item, including the answer; default --ctx")
      ->type_name("N");
  verb->add_option("--longer", flags->longer,
                   "What to do with longer items: drop, or truncate in the middle")
      ->type_name("HOW")
      ->check(CLI::IsMember({"drop", "truncate"}))
      ->capture_default_str();
  verb->add_option("--samples", flags->options.samples, "Number of items, chosen at random; 0: all")
      ->type_name("N")
      ->check(CLI::Range(0, kMostCounted))
      ->capture_default_str();
  verb->add_option("--seed", flags->sample.seed, "Seed of the random choice")
      ->type_name("N")
      ->capture_default_str();
  add_sample_flags(*verb, flags->sample);
  add_eval_output(*verb, flags->sample.eval);
  verb->footer(
      "Examples:\n"
      "  mrrope eval longbench-v2 model.gguf --methods yarn,pro --ctx 128k --data data.json \\\n"
      "    --mode letters -o run6\n"
      "  mrrope eval longbench-v2 model.gguf --methods pro --ctx 128k --data data.json \\\n"
      "    --max-tokens 120128 --longer truncate -o run7\n"
      "A run with -o that was interrupted resumes when the same command is given again.");
  verb->callback([flags] { run_longbench(*flags); });
}

}  // namespace mrrope::cli
