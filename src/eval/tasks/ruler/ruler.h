// SPDX-License-Identifier: Apache-2.0
// RULER: thirteen tasks of retrieval, tracking, counting and answering, at any length. Parameters,
// fitting, answer budgets and scoring are those of NVIDIA/RULER (c3f5e3b); words, prose and random
// numbers are our own, so the built-in samples have the same distribution and not the same bytes.
// docs/guide/evaluate.md says where they differ. Samples made by RULER's own scripts can be read
// too.
#pragma once

#include "eval/samples/prompts.h"

namespace mrrope::eval {

// As many as there are depths in a text.
constexpr std::size_t kMaxRulerQuestions = 40;

struct RulerTask {
  std::string name;
  std::string haystack;  // niah: "noise", "essay", "needle"
  std::string key;       // niah: "words", "uuids"
  std::string value;     // niah: "number", "uuid"
  int keys = 1, values = 1, queries = 1;
  int answer_tokens = 128;
  std::string scorer = "string_match_all";

  // One of several keys is asked for, so another could be asked for in the same text.
  bool multikey() const { return queries == 1 && (keys > 1 || haystack == "needle"); }
};

// All thirteen, in RULER's order.
const std::vector<RulerTask>& ruler_tasks();

struct RulerOptions {
  std::vector<std::string> tasks;  // empty: all
  std::vector<std::int64_t> lengths;
  std::size_t samples = 20;  // per task and length
  // Keys asked for in each text, one after the other: only for tasks with several. RULER asks one.
  std::size_t questions = 1;
  std::uint64_t seed = 1;
  std::filesystem::path squad;   // dev-v2.0.json, where the user has it
  std::filesystem::path hotpot;  // hotpot_dev_distractor_v1.json
  Prompts prompts = builtin_prompts();
};

// The chosen tasks. Throws Error (usage) on an unknown name.
std::vector<RulerTask> chosen_tasks(const RulerOptions& options);

// The built-in generator. Throws Error: usage (unknown task, a length below the smallest workable
// one), failed, corrupt. Frame and counter must outlive the suite.
SampleSuite make_ruler(const PromptFrame& frame, TokenCounter& counter,
                       const RulerOptions& options);

// Samples made by RULER's scripts: folder/LENGTH/TASK.jsonl, folder/LENGTH/TASK/validation.jsonl,
// both also without LENGTH if one length is asked for, or SUBFOLDER/LENGTH/data/... as its pipeline
// writes them. They include their own template. `notes` says what was skipped.
SampleSuite read_ruler(const PromptFrame& frame, const std::filesystem::path& folder,
                       const RulerOptions& options, std::vector<std::string>& notes);

// The mean over tasks by length, its averages, and the longest length at or above the threshold.
const SampleRules& ruler_rules();

// corpora: those of qa_1 and qa_2, read or made once for all lengths.
struct QaCorpus;
using QaCorpora = std::map<std::string, std::shared_ptr<const QaCorpus>>;
Drafter ruler_drafter(const RulerTask& task, const RulerOptions& options, std::int64_t length,
                      QaCorpora& corpora);

}  // namespace mrrope::eval
