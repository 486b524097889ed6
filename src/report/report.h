// SPDX-License-Identifier: Apache-2.0
// The report: one page from recorded runs, and the verdict as text.
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

// "4.32 +- 0.65"
std::string estimate_text(const eval::Estimate& e);

}  // namespace mrrope::report
