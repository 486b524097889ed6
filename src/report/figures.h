// SPDX-License-Identifier: Apache-2.0
// The charts of a report, made from recorded runs: the page shows them, the command line writes
// them as files, a terminal prints them.
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

}  // namespace mrrope::report
