// SPDX-License-Identifier: Apache-2.0
// What every evaluation ends in: rows by task, method, length, depth and metric, each with the
// values of the units that it comes from. Every task fills it from run.json and journal lines
// alone, in any order; comparisons, verdicts and every format are made from it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eval/run/task.h"
#include "eval/stats/statistics.h"
#include "eval/stats/verdict.h"

namespace mrrope::eval {

// Below this corrected p value a difference is called significant.
constexpr double kSignificant = 0.05;

// Below this difference of the top two logits another order of additions may pick the other token:
// another batch size, another machine, or computing the prompt alone instead of sharing it.
constexpr double kTie = 0.01;

// A method of run.json.
struct MethodRow {
  std::string method;
  std::string plan;        // digest
  double scale = 1;        // of the last rung; NaN where only the server knows
  bool untouched = false;  // the unmodified model
  bool grows = false;      // the unmodified model inside its window
};
// May throw an exception of the JSON library.
MethodRow read_method_row(const nlohmann::ordered_json& entry);

struct ResultRow {
  std::string task;  // of the run, or a part of it: "ruler/vt"
  std::string method;
  std::int64_t length = 0;
  std::optional<double> depth{};
  std::string metric;
  Estimate estimate{};
  UnitValues units{};  // what the estimate is of; empty for a mean of rows
};

// Methods a and b at one length, paired over the units that both have.
struct Comparison {
  std::int64_t length = 0;
  std::string a, b;
  PairedDifference difference;  // of a from b
  double corrected_p = 1;       // Holm, over all pairs at this length
};

// A model's answer and what was expected.
struct RecordedAnswer {
  std::string method;
  std::int64_t length = 0;
  double depth = 0;
  std::string expected, text;
};

// A table on a terminal: the rows of one metric, and which of their keys go down and across.
enum class Axis { task, method, length, depth };
struct TextTable {
  std::string heading;  // whole lines
  std::string metric;
  Axis down = Axis::method;
  Axis across = Axis::length;
  std::optional<std::int64_t> length{};  // rows of this length alone
  std::string method{};                  // rows of this method alone
};

struct ResultTable {
  std::string task;  // of the run
  std::int64_t window = 0;
  std::vector<MethodRow> methods;
  std::vector<std::int64_t> lengths;
  std::vector<std::string> tasks;  // of its rows, without means and parts of tasks
  std::vector<ResultRow> rows;

  std::string metric;        // the one that methods are compared by
  std::string units;         // what its values are of: "documents"
  bool logarithmic = false;  // values are losses, and estimates their exponential
  std::vector<Comparison> comparisons;
  std::vector<Verdict> verdicts;  // one per method, or none

  // Keys of results.json after these.
  nlohmann::ordered_json more = nlohmann::ordered_json::object();

  // For a terminal: before the tables, the tables, after them, and at the end.
  std::string heading;
  std::vector<TextTable> tables;
  std::map<std::string, std::string> labels;  // of tasks, where they are not their own
  std::string summary, remarks;

  std::size_t expected_units = 0;  // of the whole run; 0: not known
  std::size_t failed = 0;          // prompts that an endpoint did not answer
  std::vector<std::string> notes;  // for a report
  std::vector<RecordedAnswer> answers;

  const MethodRow* find_method(const std::string& method) const;
  // Null where there is none. of_task: the run's where it is empty.
  const ResultRow* find(const std::string& method, std::int64_t length,
                        const std::string& of_metric, std::optional<double> depth = {},
                        const std::string& of_task = {}) const;
  // The longest length inside the window; 0: none is.
  std::int64_t reference_length() const;
};

// A table with the task, the window and the methods of run.json. Throws Error (corrupt) where that
// is of another task (any task where none is given), and exceptions of the JSON library.
ResultTable begin_table(const nlohmann::ordered_json& run, std::string_view task = {});

// Calls use(method, line) for every line that holds an answer, in their order. A prompt without an
// answer is sent again by the next run, and then the later line counts. Returns how many never got
// one. Throws Error (corrupt) on a line of another task or method, and what use and the JSON
// library throw.
std::size_t collect(
    const nlohmann::ordered_json& run, const std::vector<nlohmann::ordered_json>& units,
    const MakePlaceOf& places,
    const std::function<void(std::size_t method, const nlohmann::ordered_json& unit)>& use);

// Their mean, with its error over units.
Estimate mean_of_units(const UnitValues& units);

// Adds a row, estimated from its units.
void add_row(ResultTable& table, ResultRow row);

// Every method against every other at every length, by the table's metric.
std::vector<Comparison> compare_methods(const ResultTable& table);

// Empty, or a sentence that names the tasks that the unmodified model fails inside its window: they
// say nothing about longer texts.
std::string zero_baseline_note(const ResultTable& table);

// Remarks on answers that other roundings may change, and on tokens that were computed once for
// several prompts; empty where there are none.
std::string tie_remark(std::size_t ties, std::size_t answers);
std::string sharing_remark(std::int64_t tokens, std::int64_t naive_tokens);

// The indices of the methods of run.json. May throw an exception of the JSON library.
std::map<std::string, std::size_t> method_indices(const nlohmann::ordered_json& run);

}  // namespace mrrope::eval
