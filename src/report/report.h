// SPDX-License-Identifier: Apache-2.0
// The report: one page from recorded runs, the verdict as text, and the charts and tables that they
// are made of.
#pragma once

#include <string>
#include <vector>

#include "report/page/html_page.h"
#include "report/record.h"

namespace mrrope::report {

std::string report_page(const std::vector<RunRecord>& records);

// What the page says, for scripts: verdicts, runs with their state, and every result row.
nlohmann::ordered_json report_json(const std::vector<RunRecord>& records);

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

// The heading of a task's part of the page.
std::string section_of(const std::string& task_name);

// The charts, in the order of the page. Unknown tasks get the same charts as known ones.
std::vector<Figure> figures_of(const std::vector<RunRecord>& records);

// Task by task: methods as rows, lengths as columns, with errors. Perplexity bands included.
struct TaskTable {
  std::string section;
  DataTable table;
};
std::vector<TaskTable> tables_of(const std::vector<RunRecord>& records);

// The search behind a tuned plan: the front of perplexity and answers with the chosen point, the
// path of the best, and its factors next to those of Pro and YaRN. File names are not yet told
// apart.
inline constexpr const char* kSearchSection = "Search for a better plan";
std::vector<Figure> search_figures(const RunRecord& record);

// What was found, what it cost, and what the proof says of it.
std::vector<std::string> search_text(const nlohmann::ordered_json& search);

// Every published plan compared with the found one, on held-out text. Empty without a proof.
DataTable proof_table(const RunRecord& record);

}  // namespace mrrope::report
