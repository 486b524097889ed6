// SPDX-License-Identifier: Apache-2.0
// What every task of mrrope eval is told, and what it becomes before the model is loaded.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/args/options.h"
#include "engine/llama/local.h"
#include "engine/remote/remote.h"
#include "eval/run/method_under_test.h"
#include "eval/run/run_folder.h"
#include "eval/run/target.h"
#include "eval/text/documents.h"

namespace mrrope::cli {

struct EvalFlags {
  SubjectFlags subject;
  ExtensionFlags extension;
  LocalOptions engine;
  std::vector<std::string> lengths;
  std::string out;
  std::string shard;
  std::string format = "text";
  bool json = false;
  bool dry_run = false;
  RemoteOptions remote;  // with a url: the model stands behind an endpoint
};

// In two parts, with a task's own flags between them.
void add_eval_subject(CLI::App& task, EvalFlags& flags);
void add_eval_output(CLI::App& task, EvalFlags& flags);

// What is asked for, found out before the model is loaded.
struct EvalJob {
  Model model;
  LocalOptions engine;  // a task adds how many timelines it needs
  std::int64_t ctx = 0;
  std::vector<std::int64_t> lengths;
  std::int64_t longest = 0;
  std::vector<MethodUnderTest> methods;
  RemoteOptions remote;
  bool served() const noexcept { return !remote.url.empty(); }
};

// usual_lengths(window, ctx): where --lengths is not given.
EvalJob prepare_eval(
    const EvalFlags& flags,
    const std::function<std::vector<std::int64_t>(std::int64_t, std::int64_t)>& usual_lengths);

// The local engine, or the endpoint.
struct OpenModel {
  std::unique_ptr<TimelineModel> local;
  std::unique_ptr<PromptModel> served;
  Target target() const { return served ? Target(*served) : Target(*local); }
};
OpenModel open_model(const EvalJob& job);

// The --out folder, or one in memory.
RunFolder open_folder(const EvalFlags& flags, const EvalJob& job, const Target& target,
                      std::uint64_t seed);

// The last words of a task: the folder's notes, the results in the format asked for (json:
// results.json), where they are. Throws Error (failed) where prompts went without an answer.
void print_results(const EvalFlags& flags, const RunFolder& folder, const std::string& json,
                   const std::string& text);

// Texts that ship with the project, for tasks that were given none; says so in a note.
std::vector<std::string> default_texts();

// The texts of these files and folders, or the default ones; notes what was left out.
DocumentSet read_texts(const std::vector<std::string>& given, const DocumentOptions& options);

// The tasks, one per file.
void add_eval_needle(CLI::App& eval);
void add_eval_ruler(CLI::App& eval);
void add_eval_infinitebench(CLI::App& eval);
void add_eval_longbench(CLI::App& eval);

}  // namespace mrrope::cli
