// SPDX-License-Identifier: Apache-2.0
// What every evaluation ends in: rows by task, method, length, depth and metric, each with the
// values of the units that it comes from. Every task fills it from run.json and journal lines
// alone, in any order and to the same bit: a journal can be graded again. Comparisons, verdicts and
// every format are made from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mrrope::eval {

using nlohmann::ordered_json;

// The unit of sampling is the document: tokens of one document depend on each other, so no error is
// computed over tokens. value is NaN for n = 0, error for n < 2.
struct Estimate {
  double value = std::numeric_limits<double>::quiet_NaN();
  double error = std::numeric_limits<double>::quiet_NaN();  // standard error
  std::size_t n = 0;
};

// Mean, and sample standard deviation over sqrt(n).
Estimate mean(std::span<const double> values);

// The mean of means, each counted the same, with the error that follows from theirs; nothing where
// one of them has no value.
Estimate mean_of_means(const std::vector<Estimate>& parts);

// exp(value) with error exp(value) * error (delta method): perplexity from mean log loss.
Estimate exponential(const Estimate& log);

// Two methods on the same documents or samples: the mean of a[i] - b[i], and the two-sided paired t
// test with n - 1 degrees of freedom on these differences.
struct PairedDifference {
  Estimate mean_difference;
  double p = 1;  // NaN for n < 2; 1 where all differences are 0

  // exp(mean_difference) - 1 in percent: of logarithms, by how much a is above b.
  Estimate percent() const;
};
PairedDifference paired(std::span<const double> a, std::span<const double> b);

// What was measured, by the unit that it is of. A task decides what the two numbers are: a
// document, a depth and a needle, a set and a sample.
using UnitKey = std::pair<std::size_t, std::size_t>;
using UnitValues = std::map<UnitKey, double>;

// Only units that both have, with finite values.
PairedDifference paired_where_both(const UnitValues& a, const UnitValues& b);

// Probability that |T| >= |t| for Student's t distribution.
double student_two_sided(double t, double degrees);

// Holm's correction of p values for multiple comparisons. NaN stays NaN and does not count.
std::vector<double> holm(std::span<const double> p);

// A run as its folder has it: run.json, and the lines of the journal.
struct RecordedRun {
  ordered_json run;
  std::vector<ordered_json> units;
};

// Where a unit belongs among all units of its run: no two have the same place, and a run on a local
// engine writes its units in ascending order.
using UnitPlace = std::vector<std::int64_t>;

// The place of a journal line. May throw Error (corrupt) or an exception of the JSON library.
using PlaceOf = std::function<UnitPlace(const ordered_json& unit)>;
// Made once for a run from its run.json.
using MakePlaceOf = std::function<PlaceOf(const ordered_json& run)>;

// How a metric is shown.
struct MetricInfo {
  std::string name;
  std::string title;
  std::string axis;
  std::string note{};
  bool higher_is_better = true;
  bool logarithmic = false;  // its axis; such a chart is drawn for a single length, too
  bool charted = true;       // false: in tables only
};

// Of the right answer, in nats per token, when the model reads it after the prompt: tells methods
// apart with few texts, where found or not found needs hundreds.
constexpr const char* kAnswerLoss = "answer_loss";

struct ResultTable;

// A task of mrrope eval: what a merged run, a report and other tools need to know about it. How it
// makes its units of work is in its folder under eval/tasks (runner.h runs them). Nothing outside
// that folder compares its name.
struct Task {
  std::string name;     // in run.json; rows of results.json name it, or a part of it: "ruler/vt"
  std::string section;  // heading of its part of a report
  std::vector<MetricInfo> metrics;
  MakePlaceOf places;
  std::function<ResultTable(const RecordedRun&)> results;  // throws Error (corrupt)
};

// How reports show the loss of answers.
inline MetricInfo answer_loss_info() {
  return {kAnswerLoss, "Loss of the right answer", "nats per token",
          "How little the model expects the right answer after the prompt. Lower is better.",
          false};
}

// All tasks, in the order of reports (eval/tasks/registry.cpp). Tests and programs with tasks of
// their own may add them, while no other thread uses the list.
std::vector<Task>& tasks();
// The task of a row or a run: "ruler" for "ruler/vt". Null where there is none.
const Task* find_task(std::string_view name);
// The task of a run. Throws Error (corrupt).
const Task& task_of(const ordered_json& run);

// The places of journal lines. Throws Error (corrupt) on a line that is not of this run or lacks
// something, with the number of the line.
std::vector<UnitPlace> unit_places(const RecordedRun& recorded);

// Refuses a run whose results would not fit into memory: the counts in run.json are only a claim.
// Throws Error (corrupt) where the product is above 2 million.
void check_grid(std::initializer_list<std::size_t> counts);

// Lengths in run.json. Throws Error (corrupt) where they are not positive and ascending, or none.
std::vector<std::int64_t> recorded_lengths(const ordered_json& list);

// The longest of those up to a limit; 0: none is.
std::int64_t longest_within(const std::vector<std::int64_t>& lengths, std::int64_t limit);

// Throws Error (corrupt): run.json cannot be of an evaluation, or a journal line not of its run.
[[noreturn]] void damaged_run(
    const std::string& message,
    const std::string& hint = "give another folder, or run the evaluation again");
[[noreturn]] void foreign_line(const ordered_json& line);

// A number of tokens in a unit of a journal. Throws as foreign_line() if it is negative or so large
// that sums could overflow.
std::int64_t token_count(const ordered_json& unit, const char* key);

// Calls action, and turns an exception of the JSON library into Error (corrupt).
void read_recorded(const std::function<void()>& action);

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
MethodRow read_method_row(const ordered_json& entry);

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
  std::string metric{};
};

// How far a method can be trusted (tasks/perplexity/perplexity.cpp has the rule).
struct Verdict {
  std::string method;
  bool judged = false;       // false: `reason` says what is missing
  std::int64_t good_to = 0;  // tokens; 0: no length beyond the window
  bool to_the_end = false;   // good_to is the longest length measured
  std::string reason;        // why not further
  PairedDifference cost;     // inside the window, against the untouched model
  Estimate divergence;       // KL from the untouched model there
};

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
  ordered_json more = ordered_json::object();

  // For a terminal: before the tables, the tables, after them, and at the end.
  std::string heading;
  std::vector<TextTable> tables;
  std::string mean_row, mean_label;  // the row that is a mean over tasks, where there is one
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
  // Of a from b at one length, by the table's metric; null where they were not compared.
  std::optional<PairedDifference> difference(std::int64_t length, const std::string& a,
                                             const std::string& b) const;
  // Why none of several methods has a verdict, if the reason is the same for all; otherwise empty.
  std::string reason_without_verdicts() const;
  // "vt" for "ruler/vt" in a run of ruler.
  std::string label(const std::string& of_task) const;
  // The longest length inside the window; 0: none is.
  std::int64_t reference_length() const;
};

// A table with the task, the window and the methods of run.json. May throw an exception of the JSON
// library.
ResultTable begin_table(const ordered_json& run);

// Calls use(method, line) for every line that holds an answer, in their order. A prompt without an
// answer is sent again by the next run, and then the later line counts. Returns how many never got
// one. Throws Error (corrupt) on a line of another task or method, and what use and the JSON
// library throw.
std::size_t collect(const RecordedRun& recorded,
                    const std::function<void(std::size_t method, const ordered_json& unit)>& use);

// Their mean, with its error over units.
Estimate mean_of_units(const UnitValues& units);

// The means of units with the same `group`, such as the questions about one text, whose errors are
// not independent.
UnitValues means_of(const UnitValues& units, const std::function<UnitKey(const UnitKey&)>& group);

// Adds a row, estimated from its units, and returns the estimate.
Estimate add_row(ResultTable& table, const std::string& task, const std::string& method,
                 std::int64_t length, const std::string& metric, UnitValues units,
                 std::optional<double> depth = {});

// Every method against every other at every length, by the table's metric.
std::vector<Comparison> compare_methods(const ResultTable& table);

// Empty, or a sentence that names the tasks that the unmodified model fails inside its window: they
// say nothing about longer texts.
std::string zero_baseline_note(const ResultTable& table);

// Remarks on several questions about each text, on answers that other roundings may change, and on
// tokens that were computed once for several prompts; empty where there are none.
std::string questions_remark(std::size_t questions);
std::string tie_remark(std::size_t ties, std::size_t answers);
std::string sharing_remark(std::int64_t tokens, std::int64_t naive_tokens);

// Gives the number of a line's method among those of run.json. Throws Error (corrupt) and
// exceptions of the JSON library.
std::function<std::size_t(const ordered_json& unit)> method_finder(const ordered_json& run);

// results.json: rows {task, method, plan, scale, length, depth?, metric, value, stderr, n},
// comparisons, verdicts, and what else the task has.
ordered_json to_json(const ResultTable& table);

// The rows of a results.json whose task this build does not know. What is missing there is empty
// or NaN. Throws Error (corrupt) where it has no rows.
ResultTable table_from_json(const ordered_json& results);

// One line per row below a header line; empty fields where there is no depth or nothing was
// measured. Quoted as in RFC 4180, lines end in a line feed.
std::string results_csv(const ResultTable& table);

// The schema of lm-evaluation-harness 0.4. A method at a length (and depth) is one task there, such
// as "needle/pro/8192/depth_50"; "needle/pro" groups them. A standard error that is not known is
// "N/A", as there; a value that was not measured is null. run: run.json. Throws Error (corrupt).
ordered_json lm_eval_results(const ordered_json& run, const ResultTable& table);

// Plain ASCII for a terminal: tables, comparisons at the longest length, verdicts, remarks. shaded:
// heat maps with a coloured background, for terminals that know 256 colours.
std::string to_text(const ResultTable& table, bool shaded = false);

std::string to_text(const ResultTable& table, const TextTable& part, bool shaded = false);

// "12.3 +-0.4": 100 times a score, "-" where there is none.
std::string percent_score(const Estimate& score);

// The results of a task, whose Filler(run, table, more...) has unit(method, line), called for every
// line that holds an answer, and finish(), which adds the rows. Throws Error (corrupt).
template <typename Filler, typename... More>
ResultTable fill_table(const RecordedRun& recorded, const More&... more) {
  ResultTable table;
  read_recorded([&] {
    table = begin_table(recorded.run);
    Filler filler(recorded.run, table, more...);
    check_grid({table.methods.size(), table.methods.size(), table.lengths.size()});
    table.failed = collect(
        recorded, [&](std::size_t method, const ordered_json& unit) { filler.unit(method, unit); });
    filler.finish();
    table.comparisons = compare_methods(table);
  });
  return table;
}

}  // namespace mrrope::eval
