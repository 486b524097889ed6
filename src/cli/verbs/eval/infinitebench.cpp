// SPDX-License-Identifier: Apache-2.0
// mrrope eval infinitebench: retrieval, code, mathematics and dialogue at about 100K tokens.
#include "eval/tasks/infinitebench/infinitebench.h"

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/args/eval_options.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

struct InfiniteFlags {
  SampleFlags sample;
  eval::InfiniteOptions options;
  std::string data, max_tokens;
  std::vector<std::string> min_tokens;
};

// Each is N, for all tasks, or TASK=N.
void set_min_tokens(const std::vector<std::string>& given, eval::InfiniteOptions& options) {
  for (const std::string& text : given) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      options.min_tokens = parse_length(text);
      continue;
    }
    const std::string task = text.substr(0, equals);
    const auto chosen = chosen_tasks(options, false);
    if (std::none_of(chosen.begin(), chosen.end(),
                     [&](const eval::InfiniteTask& t) { return t.name == task; })) {
      refuse(cat("--min-tokens ", text, ": ", task, " is not among the tasks"),
             "write N for all tasks, or TASK=N for one of --tasks");
    }
    options.min_tokens_of[task] = parse_length(text.substr(equals + 1));
  }
}

void run_infinitebench(InfiniteFlags& flags) {
  EvalJob job = prepare_eval(flags.sample.eval, only_ctx);
  eval::InfiniteOptions options = flags.options;
  options.seed = flags.sample.seed;
  options.length = job.longest;
  if (flags.data.empty() && (!flags.min_tokens.empty() || !flags.max_tokens.empty())) {
    refuse("--min-tokens and --max-tokens choose items of --data",
           "give --data FOLDER; samples made here have the --lengths you give");
  }
  if (!flags.data.empty() && job.lengths.size() > 1) {
    refuse("each item of --data has one length", "give --ctx alone, or --lengths without --data");
  }
  set_min_tokens(flags.min_tokens, options);
  if (!flags.max_tokens.empty()) options.max_tokens = parse_length(flags.max_tokens);
  std::int64_t min_tokens = options.min_tokens;
  for (const auto& [task, own] : options.min_tokens_of) min_tokens = std::max(min_tokens, own);
  if (min_tokens > options.max_tokens) {
    refuse(
        cat("no prompt has at least ", min_tokens, " and at most ", options.max_tokens, " tokens"),
        "give --min-tokens below --max-tokens");
  }
  options.prompts = chosen_prompts(flags.sample, "infinitebench/");
  chosen_tasks(options,
               flags.data.empty());  // an unknown one is refused before the model is loaded
  const OpenModel model = open_for_samples(job, {flags.data});
  const eval::Target target = model.target();
  const eval::PromptFrame frame(target.tokenizer(), frame_options(flags.sample));
  eval::TokenCounter counter(target.tokenizer(), frame.chat());
  if (flags.data.empty()) {
    return run_suite(flags.sample, job, target,
                     make_infinitebench(frame, counter, options, job.lengths));
  }
  std::vector<std::string> notes;
  const eval::SampleSuite suite = read_infinitebench(frame, flags.data, options, notes);
  for (const std::string& line : notes) note(line);
  run_suite(flags.sample, job, target, suite);
}

}  // namespace

void add_eval_infinitebench(CLI::App& eval) {
  auto flags = std::make_shared<InfiniteFlags>();
  CLI::App* verb = eval.add_subcommand("infinitebench",
                                       "InfiniteBench: official files, or four generated tasks");
  add_eval_subject(*verb, flags->sample.eval);
  add_value(*verb, "--data", flags->data, "DIR",
            "Folder of the official TASK.jsonl files; without it four tasks are generated");
  add_value(*verb, "--tasks", flags->options.tasks, "NAME,...",
            "passkey, number_string, kv_retrieval, code_debug, math_find, "
            "longdialogue_qa_eng (these six by default), code_run, math_calc, "
            "longbook_choice_eng, longbook_qa_eng, longbook_qa_chn, longbook_sum_eng")
      ->delimiter(',');
  add_default(*verb, "--samples", flags->options.samples, "N", "Samples per task, chosen at random")
      ->check(CLI::Range(1, kMostCounted));
  add_default(*verb, "--seed", flags->sample.seed, "N",
              "Seed of the random choice, or of the generator");
  add_value(*verb, "--min-tokens", flags->min_tokens, "N,...",
            "Skip prompts with fewer tokens, e.g. 100000; TASK=N for one task")
      ->delimiter(',');
  add_value(*verb, "--max-tokens", flags->max_tokens, "N",
            "Skip prompts with more tokens; without it they are cut in the middle to fit");
  add_sample_flags(*verb, flags->sample);
  add_eval_output(*verb, flags->sample.eval);
  verb->footer(
      "Examples:\n"
      "  mrrope eval infinitebench model.gguf --method yarn,pro --ctx 128k --data InfiniteBench "
      "\\\n"
      "    --min-tokens 100000 --samples 100 -o run5\n"
      "  mrrope eval infinitebench model.gguf --method none,pro --lengths 8k,16k --samples 20\n"
      "A run with -o that was interrupted resumes when the same command is given again.");
  verb->callback([flags] { run_infinitebench(*flags); });
}

}  // namespace mrrope::cli
