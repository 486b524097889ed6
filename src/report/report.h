// SPDX-License-Identifier: Apache-2.0
// The report: one page from recorded runs.
#pragma once

#include <string>
#include <vector>

#include "report/record.h"

namespace mrrope::report {

std::string report_page(const std::vector<RunRecord>& records);

// What the page says, for scripts: verdicts, runs with their state, and every result row.
nlohmann::ordered_json report_json(const std::vector<RunRecord>& records);

// The verdicts and the state of unfinished runs, for a terminal.
std::string report_text(const std::vector<RunRecord>& records);

}  // namespace mrrope::report
