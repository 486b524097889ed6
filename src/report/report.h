// SPDX-License-Identifier: Apache-2.0
// The report: one page from recorded runs, the verdict as text, and the charts and tables that they
// are made of.
#pragma once

#include <filesystem>

#include "base/json.h"
#include "eval/results/result_table.h"
#include "mrrope/error.h"
#include "mrrope/plan.h"
#include "report/page/html_page.h"

namespace mrrope::report {

using nlohmann::ordered_json;

// ---- Recorded runs, as a report needs them: read from run.json and the journal alone. Their files
// may be damaged or hostile.

struct RecordedMethod : eval::MethodRow {
  std::optional<Plan> numbers;  // of a ladder its last rung; absent where they make no plan
};

struct RunRecord {
  std::string name;     // its name in the report
  std::string folder;   // as given
  std::string problem;  // not empty: why it could not be read
  ErrorKind problem_kind = ErrorKind::failed;

  std::string task;
  std::string model, architecture, model_digest;
  std::int64_t window = 0;
  ordered_json run;
  std::vector<RecordedMethod> methods;

  std::size_t units = 0;
  bool finished = false;

  eval::ResultTable table;
  ordered_json search;  // results.json of mrrope tune; null: none
};

// Reads a folder. Never throws because of its content: `problem` says what is wrong with it.
RunRecord read_record(const std::filesystem::path& folder);

// The record of a run that has just finished, from run.json and its results.
RunRecord record_of(ordered_json run, eval::ResultTable table);

// All given folders; one without run.json means the runs directly below it. Shards of one run
// become one record. Names are made unique. Throws the Error of the first
// folder if none has a readable run.
std::vector<RunRecord> read_records(const std::vector<std::string>& folders);

// Runs that may share a chart: same task, model, window, texts and settings (lengths may differ).
struct RunGroup {
  std::vector<const RunRecord*> runs;
  const RunRecord& front() const { return *runs.front(); }
};
std::vector<RunGroup> grouped(const std::vector<RunRecord>& records);

// results.json of mrrope tune with everything that a report reads of it. Throws Error (corrupt),
// naming the key.
ordered_json checked_search(ordered_json results);

// ---- What is made of them.

std::string report_page(const std::vector<RunRecord>& records);

// The same runs as a page of Markdown for a folder of documents: the verdict, per task the picture
// of the metric that methods are compared by and its table, then where the numbers come from. Its
// pictures are PREFIX-FILE.svg beside it; `command` is named under each.
struct MarkdownPage {
  std::string text;
  std::vector<Figure> figures;  // file: with the prefix
};
MarkdownPage report_markdown(const std::vector<RunRecord>& records, const std::string& prefix,
                             const std::string& command);

// What the page says, for scripts: verdicts, runs with their state, and every result row.
ordered_json report_json(const std::vector<RunRecord>& records);

// The verdicts and the state of unfinished runs, for a terminal.
std::string report_text(const std::vector<RunRecord>& records);

// Which method, good to which length, what it costs at short length, how certain that is, and what
// to do next. Plain text; errors are written "+- 0.65".
struct NextStep {
  std::string what;     // "Use it"
  std::string command;  // to type
};

struct VerdictText {
  std::string model;
  std::string headline;
  std::vector<std::string> sentences;
  std::vector<NextStep> next;
  std::string method;        // the one the headline is about; empty: none
  std::int64_t good_to = 0;  // tokens; 0: no length beyond the window
};

// One per model and set of texts, from perplexity if it was measured, with the needles of the same
// model.
std::vector<VerdictText> verdicts_of(const std::vector<RunRecord>& records);

// "4.32 +- 0.65", and of percent "+1.5 +- 0.3 %".
std::string estimate_text(const eval::Estimate& e);
std::string signed_percent(const eval::Estimate& e);

// How the group's task shows a metric.
eval::MetricInfo metric_info(const RunGroup& group, const std::string& metric);

// The heading of a task's part of the page.
std::string section_of(const std::string& task_name);
// Its place on the page: a search comes first.
int section_rank(const std::string& section);

// The charts, in the order of the page. Unknown tasks get the same charts as known ones.
std::vector<Figure> figures_of(const std::vector<RunRecord>& records);

// "At 8k pro is best (3.1), none worst (240.4). " of the longest length with several values; empty
// where there is none.
std::string best_and_worst(const LineChart& chart, bool higher_is_better);

// Task by task: methods as rows, lengths as columns, with errors. Perplexity bands included.
struct TaskTable {
  std::string section;
  DataTable table;
  bool main = false;  // of the metrics that a page of Markdown shows
};
std::vector<TaskTable> tables_of(const std::vector<RunRecord>& records);

// The search behind a tuned plan: the front of perplexity and answers with the chosen point. File
// names are not yet told apart.
inline constexpr const char* kSearchSection = "Search for a better plan";
std::vector<Figure> search_figures(const RunRecord& record);

// What was found, what it cost, and what the proof says of it.
std::vector<std::string> search_text(const ordered_json& search);

// Every published plan compared with the found one, on held-out text. Empty without a proof.
DataTable proof_table(const RunRecord& record);

// ---- The numbers that the MrRoPE paper prints (data/paper.json), with a user's own beside them.
// Nothing is judged: every difference of setting that a run records is named, and so is what it
// does not record.

const ordered_json& paper();

// One of its tables; nullptr if there is none with this id.
const ordered_json* paper_table(const std::string& id);

// One table of the paper with what the runs measured under it. The last column says in what a run
// differs: model, window, base, scale, parameters, data, precision, length, tasks, samples.
DataTable compared_with_table(const ordered_json& table,
                              const std::vector<const RunRecord*>& records);

// All tables of the models of these runs. Empty if the paper has none of these models.
std::vector<DataTable> compared_with_paper(const std::vector<RunRecord>& records);

}  // namespace mrrope::report
