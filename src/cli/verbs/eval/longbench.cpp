// SPDX-License-Identifier: Apache-2.0
// mrrope eval longbench-v2: questions with four choices about long documents.
#include "eval/tasks/longbench/longbench.h"

#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/eval_options.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct LongbenchFlags {
  SampleFlags sample;
  eval::LongbenchOptions options;
  std::string data, max_tokens, longer = "drop";
};

void run_longbench(LongbenchFlags& flags) {
  EvalJob job = prepare_eval(flags.sample.eval, only_ctx);
  if (job.lengths.size() > 1) {
    refuse("LongBench-v2 runs at one length", "give --ctx, or one of --lengths");
  }
  eval::LongbenchOptions options = flags.options;
  options.seed = flags.sample.seed;
  options.length = flags.max_tokens.empty() ? job.longest : parse_length(flags.max_tokens);
  if (options.length > job.ctx) {
    refuse(cat("--max-tokens ", options.length, " is longer than --ctx ", job.ctx),
           "give a larger --ctx");
  }
  options.truncate = flags.longer == "truncate";
  options.mode = flags.sample.form == "letters" ? "letters" : "generate";
  options.prompts = chosen_prompts(flags.sample, "longbench-v2/" + options.mode);
  const OpenModel model = open_for_samples(job, {flags.data});
  const eval::Target target = model.target();
  // With letters there is no chat template: the authors use none.
  const eval::PromptFrame frame(target.tokenizer(), frame_options(flags.sample));
  std::vector<std::string> notes;
  const eval::SampleSuite suite = read_longbench(frame, flags.data, options, notes);
  for (const std::string& line : notes) note(line);
  run_suite(flags.sample, job, target, suite);
}

}  // namespace

void add_eval_longbench(CLI::App& eval) {
  auto flags = std::make_shared<LongbenchFlags>();
  CLI::App* verb =
      eval.add_subcommand("longbench-v2", "LongBench-v2: multiple choice about long documents");
  add_eval_subject(*verb, flags->sample.eval);
  add_value(*verb, "--data", flags->data, "FILE",
            "data.json of LongBench-v2, or one item per line (.jsonl)")
      ->required();
  add_value(*verb, "--max-tokens", flags->max_tokens, "N",
            "Longest item, including the answer; default --ctx");
  add_default(*verb, "--longer", flags->longer, "HOW",
              "What to do with longer items: drop, or truncate in the middle")
      ->check(CLI::IsMember({"drop", "truncate"}));
  add_default(*verb, "--samples", flags->options.samples, "N",
              "Number of items, chosen at random; 0: all")
      ->check(CLI::Range(0, kMostCounted));
  add_default(*verb, "--seed", flags->sample.seed, "N", "Seed of the random choice");
  add_sample_flags(*verb, flags->sample, {"letters"});
  add_eval_output(*verb, flags->sample.eval);
  verb->footer(
      "Examples:\n"
      "  mrrope eval longbench-v2 model.gguf --method yarn,pro --ctx 128k --data data.json \\\n"
      "    --form letters -o run6\n"
      "  mrrope eval longbench-v2 model.gguf --method pro --ctx 128k --data data.json \\\n"
      "    --max-tokens 120128 --longer truncate -o run7\n"
      "A run with -o that was interrupted resumes when the same command is given again.");
  verb->callback([flags] { run_longbench(*flags); });
}

}  // namespace mrrope::cli
