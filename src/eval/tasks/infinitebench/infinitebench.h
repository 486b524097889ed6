// SPDX-License-Identifier: Apache-2.0
// InfiniteBench: twelve tasks of about 100K tokens, from the official JSONL files (TASK.jsonl, any
// revision of the answer field), or four of them from a built-in generator at any length. Budgets,
// truncation and scoring are those of OpenBMB/InfiniteBench (88b3daa); answers are greedy.
#pragma once

#include "eval/samples/prompts.h"

namespace mrrope::eval {

struct InfiniteTask {
  std::string name;
  int answer_tokens = 0;
  bool paper = false;      // one of the six of the MrRoPE paper
  bool generated = false;  // the built-in generator makes it
};

struct InfiniteOptions {
  std::vector<std::string> tasks;  // empty: the six of the paper; of a generator: the four it makes
  std::size_t samples = 100;       // per task, chosen at random from those in range
  std::uint64_t seed = 1;
  std::int64_t length = 0;                              // prompt and answer take no more tokens
  std::int64_t min_tokens = 0;                          // prompts with fewer tokens are skipped
  std::map<std::string, std::int64_t> min_tokens_of{};  // tasks with a minimum of their own
  std::int64_t max_tokens = INT64_MAX;                  // and those with more
  Prompts prompts = builtin_prompts();
};

// Items longer than the room are cut in the middle, and marked. `notes` says what was skipped.
// Throws Error: usage, failed, corrupt (named with the line). The frame must outlive the suite.
SampleSuite read_infinitebench(const PromptFrame& frame, const std::filesystem::path& folder,
                               const InfiniteOptions& options, std::vector<std::string>& notes);

// passkey, number_string, kv_retrieval and math_find, fitted to each length.
SampleSuite make_infinitebench(const PromptFrame& frame, TokenCounter& counter,
                               const InfiniteOptions& options,
                               const std::vector<std::int64_t>& lengths);

// The chosen tasks. Throws Error (usage) on an unknown name.
std::vector<InfiniteTask> chosen_tasks(const InfiniteOptions& options, bool generated);

// Scores: official, that of InfiniteBench's compute_scores.py, and lenient, the same without its
// known mistakes (docs/guide/evaluate.md). A record's `answer` is the data's own, in any of its
// revisions, with the option's letter after it for the two tasks with options.
const SampleRules& infinitebench_rules();

}  // namespace mrrope::eval
