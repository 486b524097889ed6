// SPDX-License-Identifier: Apache-2.0
// What a run of samples found, made from run.json and journal lines alone. Answers are graded here,
// so a journal can be graded again.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/stats/statistics.h"

namespace mrrope {

// One row of results.json. Scores run from 0 to 1.
struct SampleScore {
  std::string task;  // "ruler/vt"; "ruler": the mean of all tasks; "longbench-v2/SD": a part
  std::string method;
  std::int64_t length = 0;
  std::string metric;
  Estimate score;  // the error over samples; of a mean of tasks, from theirs
};

struct SampleComparison {
  std::int64_t length = 0;
  std::string a, b;
  Estimate difference;     // of the first metric, over all samples at this length, paired
  double corrected_p = 1;  // paired t test, Holm over all pairs at this length
};

// RULER's figures of one method over all lengths.
struct RulerSummary {
  std::string method;
  std::int64_t effective = 0;  // the longest length at or above the threshold; 0: none
  double average = 0;
  double weighted_increasing = 0;  // longer lengths count more: weights 1, 2, ...
  double weighted_decreasing = 0;
};

struct SampleResults {
  std::string task;
  std::string source;
  std::int64_t window = 0;
  std::vector<std::string> methods;
  std::vector<std::int64_t> lengths;
  std::vector<std::string> tasks;    // rows of tables, in order; the mean comes last
  std::vector<std::string> metrics;  // the first one counts
  std::map<std::string, std::pair<std::string, double>> plans;  // method: digest, scale
  std::vector<SampleScore> scores;
  std::vector<SampleComparison> comparisons;
  std::vector<RulerSummary> ruler;
  std::size_t answers = 0;
  std::size_t empty = 0;       // answers without a word
  std::size_t unanswered = 0;  // answers no choice could be read from
  std::size_t truncated = 0;   // prompts that were cut, over one method
  std::size_t prompts = 0;     // over one method
  std::size_t ties = 0;        // answers that other roundings may change
  std::size_t failed = 0;      // prompts an endpoint gave no answer to
  std::int64_t tokens = 0;     // computed by all units, answers not counted
  std::int64_t naive_tokens = 0;

  // Null where there is none.
  const SampleScore* find(const std::string& row, const std::string& method, std::int64_t length,
                          const std::string& metric) const;
};

// Lines may come in any order: the outcome is the same to the last bit. Throws Error (corrupt) on
// a line that does not belong to the run.
SampleResults sample_results(const nlohmann::ordered_json& run,
                             const std::vector<nlohmann::ordered_json>& units);

nlohmann::ordered_json to_json(const SampleResults& results);

// For a terminal: a table of tasks and methods for each length, then the means.
std::string to_text(const SampleResults& results);

}  // namespace mrrope
