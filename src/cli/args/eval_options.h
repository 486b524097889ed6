// SPDX-License-Identifier: Apache-2.0
// The flags that all tasks of mrrope eval share, and what follows from them before the model is
// loaded.
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
#include "eval/run/runner.h"
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
enum class Runs { anywhere, local_only };
void add_eval_output(CLI::App& task, EvalFlags& flags, const std::string& examples,
                     Runs runs = Runs::anywhere);

// What the flags ask for, worked out before the model is loaded.
struct EvalJob {
  Model model;
  engine::LocalOptions engine;  // a task sets how many timelines it needs
  std::int64_t ctx = 0;
  std::vector<std::int64_t> lengths;
  std::int64_t longest = 0;
  std::vector<eval::MethodUnderTest> methods;
  std::map<std::size_t, LadderChoice> automatic;  // which of the methods are auto
  engine::Places places;                          // a task adds what it reads
  engine::RemoteOptions remote;
  bool served() const noexcept { return !remote.url.empty(); }
};

// (window, ctx): the lengths if --lengths is not given.
using DefaultLengths =
    std::function<std::vector<std::int64_t>(std::int64_t window, std::int64_t ctx)>;
// The first, and doubling up to ctx.
std::vector<std::int64_t> doubling(std::int64_t first, std::int64_t ctx);
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

// The texts that come with mrrope, for tasks that were given none; says so in a note.
std::vector<std::string> default_texts();

// The texts of these files and folders, or the default ones; notes what was skipped.
eval::DocumentSet read_texts(const std::vector<std::string>& given,
                             const eval::DocumentOptions& options);

// The tasks of other files than eval_command.cpp, which lists all.
void add_eval_ppl(CLI::App& eval);
void add_eval_needle(CLI::App& eval);

}  // namespace mrrope::cli
