// SPDX-License-Identifier: Apache-2.0
// The results of a run of samples, made from run.json and journal lines alone. Answers are graded
// here, so a journal can be graded again.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/run/method_under_test.h"
#include "eval/run/task.h"
#include "eval/samples/sample.h"
#include "eval/stats/comparison.h"
#include "eval/stats/near_tie.h"

namespace mrrope::eval {

// One row of results.json. Scores run from 0 to 1.
struct SampleScore {
  std::string task;  // "ruler/vt"; "ruler": the mean of all tasks; "longbench-v2/SD": a part
  std::string method;
  std::int64_t length = 0;
  std::string metric;
  Estimate score;  // the error over samples; for a mean of tasks, from theirs
};

struct SampleResults {
  std::string task;
  std::string source;
  std::int64_t window = 0;
  std::size_t units = 0;  // of the whole run
  std::vector<MethodRow> rows;
  std::vector<std::int64_t> lengths;
  std::vector<std::string> tasks;  // rows of tables, in order; the mean comes last
  std::size_t own_tasks = 0;       // the first of them, without parts and the mean
  // The row of the mean of all tasks: the benchmark's name, or with "(mean of 5 of 6 tasks)" after
  // it where a task has no sample in this run. Such a mean is another figure.
  std::string mean_row;
  std::size_t mean_of = 0;           // tasks
  std::vector<std::string> metrics;  // the first one counts
  std::vector<SampleScore> scores;
  std::vector<Comparison> comparisons;  // of the first metric, over all samples at a length
  nlohmann::ordered_json summary = nlohmann::ordered_json::object();  // goes into results.json
  std::string summary_text;
  std::size_t answers = 0;
  std::size_t empty = 0;       // answers without a word
  std::size_t unanswered = 0;  // answers that name no choice
  std::size_t truncated = 0;   // prompts that were cut, for one method
  std::size_t prompts = 0;     // for one method
  std::size_t questions = 1;   // asked about one text; n counts texts
  std::size_t ties = 0;        // answers that other roundings may change
  std::size_t failed = 0;      // prompts that an endpoint did not answer
  std::int64_t tokens = 0;     // computed by all units, answers not counted
  std::int64_t naive_tokens = 0;

  // Null where there is none.
  const SampleScore* find(const std::string& row, const std::string& method, std::int64_t length,
                          const std::string& metric) const;
};

// Lines may come in any order: the outcome is the same to the last bit. Throws Error (corrupt) on
// a line that does not belong to the run.
SampleResults sample_results(const SampleRules& rules, const nlohmann::ordered_json& run,
                             const std::vector<nlohmann::ordered_json>& units);

nlohmann::ordered_json to_json(const SampleResults& results);

// For a terminal: a table of tasks and methods for each length, then the means.
std::string to_text(const SampleResults& results);

// Empty, or a sentence that names the tasks of which the untouched model gets 0 % inside its
// window, so that nothing can be learned beyond it.
std::string hopeless_text(const SampleResults& results);

// A unit's place: set, group, method.
PlaceOf sample_places(const nlohmann::ordered_json& run);

// A benchmark's row of the table of tasks. The rules must outlive it.
TaskResults task_results(const SampleResults& results);
Task sample_task(const std::string& name, const SampleRules& rules);

}  // namespace mrrope::eval
