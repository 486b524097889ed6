// SPDX-License-Identifier: Apache-2.0
// What an answer is worth. Each benchmark's own rules, one by one, traps included; where they are
// known to misjudge, a lenient score stands beside the official one. All scores run from 0 to 1.
// tests/golden/scorers holds what the original scorers say.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mrrope {

struct Score {
  std::string metric;
  double value = 0;
};

// `record` is a sample of the journal: text, expected, and what the scorer wants besides (answer).
// The first score is the one that counts. Throws Error (corrupt) for an unknown scorer.
std::vector<Score> grade(const std::string& scorer, const nlohmann::ordered_json& record);

// Whether no further text can change the score.
bool decided(const std::string& scorer, const std::vector<std::string>& expected,
             std::string_view text);

// RULER: the share of expected strings that occur, in any case; or whether one of them does.
double string_match_all(const std::vector<std::string>& expected, std::string_view text);
double string_match_part(const std::vector<std::string>& expected, std::string_view text);

// InfiniteBench's compute_scores.py, by its task names. `answer` is the data's own, in any of its
// revisions, with the option's letter beside it for the two tasks with options.
double infinitebench_official(const std::string& task, const nlohmann::ordered_json& answer,
                              const std::string& text);
// The same, without what is known to go wrong: see docs/benchmarks.md.
double infinitebench_lenient(const std::string& task, const nlohmann::ordered_json& answer,
                             const std::string& text);

// LongBench-v2: the letter an answer names, or 0.
char longbench_letter(std::string_view text);

}  // namespace mrrope
