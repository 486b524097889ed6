// SPDX-License-Identifier: Apache-2.0
// The charts of a report, made from recorded runs: the page shows them, the command line writes
// them as files.
#pragma once

#include <string>
#include <vector>

#include "report/charts/chart.h"
#include "report/charts/markup.h"
#include "report/record.h"

namespace mrrope::report {

// The heading of a task's part of the page.
std::string section_of(const std::string& task_name);

// In the order of the page. Unknown tasks get the same charts as known ones.
std::vector<Figure> figures_of(const std::vector<RunRecord>& records);

// Task by task: methods as rows, lengths as columns, with errors. Perplexity bands included.
struct TaskTable {
  std::string section;
  DataTable table;
};
std::vector<TaskTable> tables_of(const std::vector<RunRecord>& records);

// The search behind a tuned plan: the front of perplexity and answers with the chosen point, the
// path of the best, and its factors next to those of Pro and YaRN.
inline constexpr const char* kSearchSection = "Search for a better plan";

// results.json of mrrope tune with everything that the functions below read. Throws Error
// (corrupt), naming the key.
nlohmann::ordered_json checked_search(nlohmann::ordered_json results);

// File names are not yet told apart.
std::vector<Figure> search_figures(const RunRecord& record);

// What was found, what it cost, and what the proof says of it.
std::vector<std::string> search_text(const nlohmann::ordered_json& search);

// Every published plan compared with the found one, on held-out text. Empty without a proof.
DataTable proof_table(const RunRecord& record);

}  // namespace mrrope::report
