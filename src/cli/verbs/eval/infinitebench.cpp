// SPDX-License-Identifier: Apache-2.0
// mrrope eval infinitebench: retrieval, code, mathematics and dialogue at about 100K tokens.
#include "eval/tasks/infinitebench/infinitebench.h"

#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/eval_options.h"
#include "cli/args/sample_options.h"
#include "cli/args/test_cut.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct InfiniteFlags {
  SampleFlags sample;
  eval::InfiniteOptions options;
  std::string data, least, most;
};

void run_infinitebench(InfiniteFlags& flags) {
  const EvalJob job = prepare_eval(flags.sample.eval, only_ctx);
  eval::InfiniteOptions options = flags.options;
  options.samples = cut_samples(options.samples);
  options.seed = flags.sample.seed;
  options.length = job.longest;
  if (flags.data.empty() && (!flags.least.empty() || !flags.most.empty())) {
    throw Error(ErrorKind::usage, "--min-tokens and --max-tokens choose items of --data",
                "give --data FOLDER; samples made here have the --lengths you give");
  }
  if (!flags.least.empty()) options.least = cut_length(parse_length(flags.least));
  if (!flags.most.empty()) options.most = cut_length(parse_length(flags.most));
  if (options.least > options.most) {
    throw Error(
        ErrorKind::usage,
        cat("no prompt has at least ", options.least, " and at most ", options.most, " tokens"),
        "give --min-tokens below --max-tokens");
  }
  options.prompts = chosen_prompts(flags.sample);
  const OpenModel model = open_for_samples(job);
  const eval::Target target = model.target();
  const eval::PromptFrame frame(target.tokenizer(), frame_options(flags.sample));
  eval::TokenCounter counter(target.tokenizer(), frame.chat());
  if (flags.data.empty()) {
    return run_suite(flags.sample, job, target,
                     make_infinitebench(frame, counter, options, job.lengths));
  }
  if (job.lengths.size() > 1) {
    throw Error(ErrorKind::usage, "each item of the official data has one length",
                "give --ctx alone, or --lengths without --data");
  }
  std::vector<std::string> notes;
  const eval::SampleSuite suite =
      read_infinitebench(target.tokenizer(), frame, flags.data, options, notes);
  for (const std::string& line : notes) note(line);
  run_suite(flags.sample, job, target, suite);
}

}  // namespace

void add_eval_infinitebench(CLI::App& eval) {
  auto flags = std::make_shared<InfiniteFlags>();
  CLI::App* verb = eval.add_subcommand("infinitebench",
                                       "InfiniteBench: official files, or four generated tasks");
  add_eval_subject(*verb, flags->sample.eval);
  verb->add_option("--data", flags->data,
                   "Folder of the official TASK.jsonl files; without it four tasks are generated")
      ->type_name("DIR");
  verb->add_option("--tasks", flags->options.tasks,
                   "passkey, number_string, kv_retrieval, code_debug, math_find, "
                   "longdialogue_qa_eng (these six by default), code_run, math_calc, "
                   "longbook_choice_eng, longbook_qa_eng, longbook_qa_chn, longbook_sum_eng")
      ->type_name("NAME,...")
      ->delimiter(',');
  verb->add_option("--samples", flags->options.samples, "Samples per task, chosen at random")
      ->type_name("N")
      ->check(CLI::Range(1, kMostCounted))
      ->capture_default_str();
  verb->add_option("--seed", flags->sample.seed, "Seed of the random choice, or of the generator")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--min-tokens", flags->least, "Skip prompts with fewer tokens, e.g. 100000")
      ->type_name("N");
  verb->add_option("--max-tokens", flags->most,
                   "Skip prompts with more tokens; without it they are cut in the middle to fit")
      ->type_name("N");
  add_sample_flags(*verb, flags->sample);
  add_eval_output(*verb, flags->sample.eval);
  verb->footer(
      "Examples:\n"
      "  mrrope eval infinitebench model.gguf --methods yarn,pro --ctx 128k --data InfiniteBench "
      "\\\n"
      "    --min-tokens 100000 --samples 100 -o run5\n"
      "  mrrope eval infinitebench model.gguf --methods none,pro --lengths 8k,16k --samples 20\n"
      "A run with -o that was interrupted resumes when the same command is given again.");
  verb->callback([flags] { run_infinitebench(*flags); });
}

}  // namespace mrrope::cli
