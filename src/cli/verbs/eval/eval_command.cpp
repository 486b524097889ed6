// SPDX-License-Identifier: Apache-2.0
// mrrope eval: the verb over all tasks, and its benchmarks of samples.
#include <fstream>
#include <iostream>

#include "base/files/source.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/args/options.h"
#include "eval/tasks/infinitebench/infinitebench.h"
#include "eval/tasks/longbench/longbench.h"
#include "eval/tasks/ruler/ruler.h"

namespace mrrope::cli {

namespace {

// ---- What benchmarks of samples share.

struct SampleFlags {
  EvalFlags eval;
  std::string form = "auto";
  std::vector<std::string> without;
  std::string prompts;
  std::string prompts_digest{};  // set by chosen_prompts()
  bool show_prompt = false;
  std::uint64_t seed = 1;
};

// The last ones of a benchmark.
void add_sample_flags(CLI::App& task, SampleFlags& flags) {
  add(task, "--form", flags.form)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add(task, "--without", flags.without);
  add(task, "--prompts", flags.prompts);
  add(task, "--show-prompt", flags.show_prompt);
  add_eval_output(task, flags.eval);
}

eval::FrameOptions frame_options(const SampleFlags& flags) {
  const auto has = [&](const char* part) { return std::ranges::count(flags.without, part) == 0; };
  const char* chat = flags.form == "auto" ? "auto" : flags.form == "chat" ? "on" : "off";
  return {chat, has("prefix"), has("bos")};
}

// Those of --prompts, or the built-in ones. used: how the names of the prompts begin that the run
// reads. Throws Error (usage) if the file changes none of these.
eval::Prompts chosen_prompts(SampleFlags& flags, const std::string& used) {
  if (flags.prompts.empty()) return eval::builtin_prompts();
  eval::Prompts prompts = eval::read_prompts(flags.prompts, &flags.prompts_digest);
  refuse_if(prompts_identity(prompts, used) == prompts_identity(eval::builtin_prompts(), used),
            cat("--prompts ", flags.prompts, " changes nothing: this run uses prompts named ", used,
                ", and the file replaces none of them"),
            cat("give the file a prompt of that name, or leave out --prompts"));
  return prompts;
}

// The default of --lengths: only --ctx.
std::vector<std::int64_t> only_ctx(std::int64_t /*window*/, std::int64_t ctx) { return {ctx}; }

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

using MakeSuite = std::function<eval::SampleSuite(
    const eval::PromptFrame& frame, eval::TokenCounter& counter, std::vector<std::string>& notes)>;

// Shows prompts, prints the cost, or runs the suite and prints the results. reads: the files that
// the task was given; names may be empty.
void run_suite(const SampleFlags& flags, EvalJob& job, const std::vector<std::string>& reads,
               const eval::FrameOptions& framed, const MakeSuite& make) {
  extend(job.places.reads, reads);
  job.engine.timelines = 1;
  job.dry_run |= flags.show_prompt;
  const OpenModel model = open_model(job);
  const eval::Target target = model.target();
  const eval::PromptFrame frame(target.tokenizer(), framed);
  eval::TokenCounter counter(target.tokenizer(), frame.chat());
  std::vector<std::string> notes;
  eval::SampleSuite suite = make(frame, counter, notes);
  for (const std::string& line : notes) note(line);
  if (flags.show_prompt) return show_prompts(suite);
  if (flags.eval.dry_run) return print_dry_run(job, target, suite);
  if (!flags.prompts_digest.empty()) suite.settings["prompts_sha256"] = flags.prompts_digest;
  run_eval(flags.eval, job, target, flags.seed,
           [&](eval::RunFolder& folder, eval::Progress& progress) {
             return run_samples(target, job.methods, suite, {}, folder, progress);
           });
}

// ---- ruler: thirteen synthetic tasks at every length.

struct RulerFlags {
  SampleFlags sample;
  eval::RulerOptions options;
  std::vector<std::string> data;
};

// SQuAD's file is an object, HotpotQA's a list.
bool is_squad(const std::string& path) {
  std::ifstream in(path);
  char first = 0;
  return bool(in >> first) && first == '{';
}

void run_ruler(RulerFlags& flags) {
  EvalJob job = prepare_eval(flags.sample.eval, [](std::int64_t /*window*/, std::int64_t ctx) {
    return eval::doubling(4096, ctx);  // as in RULER's own tables
  });
  eval::RulerOptions options = flags.options;
  options.lengths = job.lengths;
  options.seed = flags.sample.seed;
  std::string folder;  // of samples; files hold questions for those that are made here
  for (const std::string& path : flags.data) {
    if (!file_exists(path)) {
      folder = path;
    } else {
      (is_squad(path) ? options.squad : options.hotpot) = path;
    }
  }
  options.prompts = chosen_prompts(flags.sample, "ruler/");
  refuse_if(!folder.empty() && !flags.sample.prompts.empty(),
            "--prompts changes nothing: samples of --data have their prompts",
            "leave out --prompts or --data");
  chosen_tasks(options);  // an unknown one is refused before the model is loaded
  eval::FrameOptions framed = frame_options(flags.sample);
  // RULER's files include their template.
  if (!folder.empty() && framed.chat == "auto") framed.chat = "off";
  run_suite(flags.sample, job, flags.data, framed,
            [&](const eval::PromptFrame& frame, eval::TokenCounter& counter, auto& notes) {
              return folder.empty() ? make_ruler(frame, counter, options)
                                    : read_ruler(frame, folder, options, notes);
            });
}

void add_eval_ruler(CLI::App& eval) {
  const auto [verb, flags] = add_verb<RulerFlags>(eval, "ruler", run_ruler);
  add_eval_subject(verb, flags.sample.eval);
  add(verb, "--tasks", flags.options.tasks);
  add(verb, "--samples", flags.options.samples);
  add(verb, "--questions", flags.options.questions)
      ->check(in_range(std::size_t(1), eval::kMaxRulerQuestions));
  add(verb, "--seed", flags.sample.seed);
  add(verb, "--data", flags.data);
  add_sample_flags(verb, flags.sample);
}

// ---- infinitebench: retrieval, code, mathematics and dialogue at about 100K tokens.

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
    refuse_if(find_by(chosen, &eval::InfiniteTask::name, task) == nullptr,
              cat("--min-tokens ", text, ": ", task, " is not among the tasks"),
              "write N for all tasks, or TASK=N for one of --tasks");
    options.min_tokens_of[task] = parse_length(text.substr(equals + 1));
  }
}

void run_infinitebench(InfiniteFlags& flags) {
  EvalJob job = prepare_eval(flags.sample.eval, only_ctx);
  eval::InfiniteOptions options = flags.options;
  options.seed = flags.sample.seed;
  options.length = job.longest;
  refuse_if(flags.data.empty() && (!flags.min_tokens.empty() || !flags.max_tokens.empty()),
            "--min-tokens and --max-tokens choose items of --data",
            "give --data FOLDER; samples made here have the --lengths you give");
  refuse_if(!flags.data.empty() && job.lengths.size() > 1, "each item of --data has one length",
            "give --ctx alone, or --lengths without --data");
  set_min_tokens(flags.min_tokens, options);
  if (!flags.max_tokens.empty()) options.max_tokens = parse_length(flags.max_tokens);
  std::int64_t min_tokens = options.min_tokens;
  for (const auto& [task, own] : options.min_tokens_of) min_tokens = std::max(min_tokens, own);
  refuse_if(
      min_tokens > options.max_tokens,
      cat("no prompt has at least ", min_tokens, " and at most ", options.max_tokens, " tokens"),
      "give --min-tokens below --max-tokens");
  options.prompts = chosen_prompts(flags.sample, "infinitebench/");
  chosen_tasks(options,
               flags.data.empty());  // an unknown one is refused before the model is loaded
  run_suite(flags.sample, job, {flags.data}, frame_options(flags.sample),
            [&](const eval::PromptFrame& frame, eval::TokenCounter& counter, auto& notes) {
              return flags.data.empty() ? make_infinitebench(frame, counter, options, job.lengths)
                                        : read_infinitebench(frame, flags.data, options, notes);
            });
}

void add_eval_infinitebench(CLI::App& eval) {
  const auto [verb, flags] = add_verb<InfiniteFlags>(eval, "infinitebench", run_infinitebench);
  add_eval_subject(verb, flags.sample.eval);
  add(verb, "--data", flags.data);
  add(verb, "--tasks", flags.options.tasks);
  add(verb, "--samples", flags.options.samples);
  add(verb, "--seed", flags.sample.seed);
  add(verb, "--min-tokens", flags.min_tokens);
  add(verb, "--max-tokens", flags.max_tokens);
  add_sample_flags(verb, flags.sample);
}

// ---- longbench-v2: questions with four choices about long documents.

struct LongbenchFlags {
  SampleFlags sample;
  eval::LongbenchOptions options;
  std::string data, max_tokens, longer = "drop";
};

void run_longbench(LongbenchFlags& flags) {
  EvalJob job = prepare_eval(flags.sample.eval, only_ctx);
  refuse_if(job.lengths.size() > 1, "LongBench-v2 runs at one length",
            "give --ctx, or one of --lengths");
  eval::LongbenchOptions options = flags.options;
  options.seed = flags.sample.seed;
  options.length = flags.max_tokens.empty() ? job.longest : parse_length(flags.max_tokens);
  refuse_if(options.length > job.ctx,
            cat("--max-tokens ", options.length, " is longer than --ctx ", job.ctx),
            "give a larger --ctx");
  options.truncate = flags.longer == "truncate";
  options.mode = flags.sample.form == "letters" ? "letters" : "generate";
  options.prompts = chosen_prompts(flags.sample, "longbench-v2/" + options.mode);
  // With letters there is no chat template: the authors use none.
  run_suite(flags.sample, job, {flags.data}, frame_options(flags.sample),
            [&](const eval::PromptFrame& frame, eval::TokenCounter&, auto& notes) {
              return read_longbench(frame, flags.data, options, notes);
            });
}

void add_eval_longbench(CLI::App& eval) {
  const auto [verb, flags] = add_verb<LongbenchFlags>(eval, "longbench-v2", run_longbench);
  add_eval_subject(verb, flags.sample.eval);
  add(verb, "--data", flags.data)->required();
  add(verb, "--max-tokens", flags.max_tokens);
  add(verb, "--longer", flags.longer);
  add(verb, "--samples", flags.options.samples);
  add(verb, "--seed", flags.sample.seed);
  add_sample_flags(verb, flags.sample);
}

}  // namespace

void add_eval(CLI::App& app) {
  CLI::App& verb = add_named(app, "eval");
  verb.require_subcommand(1);
  for (const auto add : {add_eval_ppl, add_eval_needle, add_eval_ruler, add_eval_infinitebench,
                         add_eval_longbench}) {
    add(verb);
  }
}

}  // namespace mrrope::cli
