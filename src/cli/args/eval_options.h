// SPDX-License-Identifier: Apache-2.0
// The flags that all tasks of mrrope eval share, those that benchmarks of samples share, and what
// follows from them before the model is loaded.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/args/options.h"
#include "engine/remote/remote.h"
#include "eval/run/method_under_test.h"
#include "eval/run/runner.h"
#include "eval/samples/prompts.h"
#include "eval/samples/sample.h"
#include "eval/text/documents.h"

namespace mrrope::cli {

struct EvalFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  engine::LocalOptions engine;
  std::vector<std::string> lengths;
  std::string out;
  std::string shard;
  std::string format = "text";
  bool dry_run = false;
  engine::RemoteOptions remote;  // with a url: the model is behind an endpoint
};

// In two parts; a task's own flags come between them.
void add_eval_subject(CLI::App& task, EvalFlags& flags);
void add_eval_output(CLI::App& task, EvalFlags& flags);

// What the flags ask for, worked out before the model is loaded.
struct EvalJob {
  Model model;
  engine::LocalOptions engine;  // a task sets how many timelines it needs
  std::int64_t ctx = 0;
  std::vector<std::int64_t> lengths;
  std::int64_t longest = 0;
  std::vector<eval::MethodUnderTest> methods;
  std::map<std::size_t, LadderChoice> automatic;  // which of the methods are auto
  Places places;                                  // a task adds what it reads
  engine::RemoteOptions remote;
  bool served() const noexcept { return !remote.url.empty(); }
};

// (window, ctx): the lengths if --lengths is not given.
using DefaultLengths =
    std::function<std::vector<std::int64_t>(std::int64_t window, std::int64_t ctx)>;
EvalJob prepare_eval(const EvalFlags& flags, const DefaultLengths& default_lengths);

// The local engine, or the endpoint.
struct OpenModel {
  std::unique_ptr<TimelineModel> local;
  std::unique_ptr<PromptModel> served;
  eval::Target target() const { return served ? eval::Target(*served) : eval::Target(*local); }
};
// Checks everything that needs no model first. Where this model cannot run auto, what takes its
// place is measured, as generate and serve would use it.
OpenModel open_model(EvalJob& job);

// Calls run_evaluation() and prints its results. Throws Error (failed) if prompts got no answer.
void run_eval(const EvalFlags& flags, const EvalJob& job, const eval::Target& target,
              std::uint64_t seed, const eval::RunTask& run);

// The cost of a task for --dry-run, on a local engine: memory, and the time that passes over these
// many tokens take.
void print_local_cost(const EvalJob& job, const eval::Target& target,
                      const std::vector<std::int64_t>& passes, const char* ending = "");

// What run.json says of the model file, so that a report can name it in commands.
nlohmann::ordered_json model_file(const SubjectFlags& flags);

// The texts that come with mrrope, for tasks that were given none; says so in a note.
std::vector<std::string> default_texts();

// The texts of these files and folders, or the default ones; notes what was skipped.
eval::DocumentSet read_texts(const std::vector<std::string>& given,
                             const eval::DocumentOptions& options);

// ---- Benchmarks of samples.

struct SampleFlags {
  EvalFlags eval;
  std::string form = "auto";
  std::vector<std::string> without;
  std::string prompts;
  std::string prompts_digest{};  // set by chosen_prompts()
  bool show_prompt = false;
  std::uint64_t seed = 1;
};

// --form, --without, --prompts, --show-prompt. more: forms of this task alone.
void add_sample_flags(CLI::App& task, SampleFlags& flags,
                      const std::vector<std::string>& more = {});

eval::FrameOptions frame_options(const SampleFlags& flags);
// Those of --prompts, or the built-in ones. used: how the names of the prompts begin that the run
// reads. Throws Error (usage) if the file changes none of these.
eval::Prompts chosen_prompts(SampleFlags& flags, const std::string& used);

// The default of --lengths: only --ctx.
inline std::vector<std::int64_t> only_ctx(std::int64_t /*window*/, std::int64_t ctx) {
  return {ctx};
}

// The engine for this job: one timeline is enough. reads: the files that the task was given; names
// may be empty.
OpenModel open_for_samples(EvalJob& job, const std::vector<std::string>& reads);

// Shows prompts, prints the cost, or runs the suite and prints the results.
void run_suite(const SampleFlags& flags, const EvalJob& job, const eval::Target& target,
               const eval::SampleSuite& suite);

// The tasks, one per file of cli/verbs/eval; eval.cpp lists them.
void add_eval_ppl(CLI::App& eval);
void add_eval_needle(CLI::App& eval);
void add_eval_ruler(CLI::App& eval);
void add_eval_infinitebench(CLI::App& eval);
void add_eval_longbench(CLI::App& eval);

}  // namespace mrrope::cli
