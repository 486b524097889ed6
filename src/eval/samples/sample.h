// SPDX-License-Identifier: Apache-2.0
// The prompts of a benchmark with their expected answers. A benchmark only makes sample sets and
// says how answers are scored; running and results are the same for all. Answers are greedy.
//
// The unit of work is a group of consecutive samples of one set. Inside a unit samples are computed
// in the order of their tokens, and what one has in common with the one before is kept: so every
// shared prefix is computed once. Under a ladder that is so where no rung lies between the end of
// the prefix and the end of the last answer: otherwise its keys were turned since.
#pragma once

#include "eval/run/runner.h"

namespace mrrope::eval {

struct Sample {
  std::string id;                     // unique within its set
  std::string text;                   // the final prompt, for people
  std::vector<Token> prompt;          // what is sent: its tokens, with the one BOS
  std::vector<std::string> expected;  // the scorer decides how they count
  // Goes into the journal line as it is: what else scoring and tables need.
  ordered_json more = ordered_json::object();
};

// Samples of one task at one length. They are made when needed: a set may be larger than memory.
struct SampleSet {
  std::string task;         // "ruler/niah_single_1"
  std::int64_t length = 0;  // prompt and room for the answer take no more tokens than this
  std::string scorer;       // for SampleRules
  int answer_tokens = 0;
  std::size_t count = 0;
  // So many consecutive samples ask about one text: their errors are not independent.
  std::size_t questions = 1;
  // Sample 0 .. count - 1: a pure function of the index.
  std::function<Sample(std::size_t)> make{};
  // If set, nothing is generated: the answer is the letter A, B, ... whose tokens have the largest
  // logit after the prompt.
  std::vector<std::vector<Token>> letters{};
};

// From 0 to 1. Each benchmark's rules are reproduced exactly, including their quirks (see
// tests/golden/scorers.json); where they misjudge, a lenient score is reported as well.
struct Score {
  std::string metric;
  double value = 0;
};

// Throws Error (corrupt): run.json names a scorer that its task does not have.
[[noreturn]] void unknown_scorer(const std::string& name);

// What a benchmark decides about its answers. A scorer is a name in run.json.
struct SampleRules {
  // `record` is a sample of the journal: text, expected, and what else the scorer needs. The first
  // score is the main one. Throws Error (corrupt) for an unknown scorer.
  std::vector<Score> (*grade)(const std::string& scorer, const ordered_json& record);
  // Whether no further text can change the score. Absent: never.
  bool (*decided)(const std::string& scorer, const std::vector<std::string>& expected,
                  std::string_view text) = nullptr;
  // Whether no choice can be read from an answer. Absent: never.
  bool (*unanswered)(const std::string& scorer, std::string_view text) = nullptr;
  // The right answer, as a model would write it, whose loss is measured. Absent: none is.
  std::string (*answer)(const std::string& scorer,
                        const std::vector<std::string>& expected) = nullptr;
  // The name of the one score that all scorers have; empty: they name theirs.
  std::string metric{};
  // Adds the benchmark's own figures; row: of the mean over all tasks. Absent: none.
  void (*summarize)(ResultTable& table, const std::string& row) = nullptr;
};

// Everything that one run asks.
struct SampleSuite {
  std::string task;  // "ruler"
  const SampleRules* rules = nullptr;
  ordered_json settings{};  // for run.json: everything that the samples depend on
  std::vector<SampleSet> sets{};
};

struct SampleRunOptions : EngineUse {
  // Samples per unit: what a kill loses, and what can share a prefix. Part of the run's identity.
  std::size_t group = 10;
};

// What run_samples() checks first. Throws Error (usage).
void check_samples(const Target& target, const std::vector<MethodUnderTest>& methods,
                   const SampleSuite& suite);

// Runs the units that the folder's journal does not have yet, then writes results.json. Throws
// Error: usage, and what run_job() throws.
ResultTable run_samples(const Target& target, const std::vector<MethodUnderTest>& methods,
                        const SampleSuite& suite, const SampleRunOptions& options,
                        RunFolder& folder, Progress& progress);

// A benchmark as a task. Its rows are tasks ("ruler/vt"), parts of them that samples are tagged
// with ("longbench-v2/SD"), and the mean over all tasks: named like the benchmark, or with "(mean
// of 5 of 6 tasks)" after it where a task has no sample in this run, for such a mean is another
// figure. Scores run from 0 to 1; their errors are over samples, or over texts where each has
// several questions, and for a mean follow from those of its tasks. Units are sets and samples. The
// rules must outlive the task.
Task sample_task(const std::string& name, const SampleRules& rules);

}  // namespace mrrope::eval
