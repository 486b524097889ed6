// SPDX-License-Identifier: Apache-2.0
// The charts of a report, made from recorded runs: the page shows them, the command line writes
// them as files, a terminal prints them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "report/charts/chart.h"
#include "report/charts/data_table.h"
#include "report/record.h"

namespace mrrope::report {

struct Figure {
  std::string section;  // heading of the page
  std::string file;     // name without extension, unique
  std::string title;
  std::string note;  // plain text under the title
  std::variant<LineChart, std::vector<HeatMap>> content;
};

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

}  // namespace mrrope::report
