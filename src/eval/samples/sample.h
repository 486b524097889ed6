// SPDX-License-Identifier: Apache-2.0
// The prompts of a benchmark with their expected answers. A benchmark only makes sample sets and
// says how answers are scored; running and results are the same for all (sample_run.h,
// sample_results.h).
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "eval/score/scorers.h"
#include "model/tokenizer.h"

namespace mrrope::eval {

struct Sample {
  std::string id;                     // unique within its set
  std::string text;                   // the final prompt, for people
  std::vector<Token> prompt;          // what is sent: its tokens, with the one BOS
  std::vector<std::string> expected;  // the scorer decides how they count
  // Goes into the journal line as it is: what else scoring and tables need.
  nlohmann::ordered_json more = nlohmann::ordered_json::object();
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
  std::function<Sample(std::size_t)> make;
  // If set, nothing is generated: the answer is the letter A, B, ... whose tokens have the largest
  // logit after the prompt.
  std::vector<std::vector<Token>> letters;
};

struct ResultTable;

// What a benchmark decides about its answers. A scorer is a name in run.json.
struct SampleRules {
  // `record` is a sample of the journal: text, expected, and what else the scorer needs. The first
  // score is the main one. Throws Error (corrupt) for an unknown scorer.
  std::vector<Score> (*grade)(const std::string& scorer, const nlohmann::ordered_json& record);
  // Whether no further text can change the score. Absent: never.
  bool (*decided)(const std::string& scorer, const std::vector<std::string>& expected,
                  std::string_view text) = nullptr;
  // Whether no choice can be read from an answer. Absent: never.
  bool (*unanswered)(const std::string& scorer, std::string_view text) = nullptr;
  // One name for the main score of all scorers; empty: each has its own.
  std::string metric{};
  // Adds the benchmark's own figures; row: of the mean over all tasks. Absent: none.
  void (*summarize)(ResultTable& table, const std::string& row) = nullptr;
};

// Everything that one run asks.
struct SampleSuite {
  std::string task;  // "ruler"
  const SampleRules* rules = nullptr;
  nlohmann::ordered_json settings;  // for run.json: everything that the samples depend on
  std::vector<SampleSet> sets;
};

}  // namespace mrrope::eval
