// SPDX-License-Identifier: Apache-2.0
// The verdict as text: which method, good to which length, what it costs at short length, how
// certain that is, and what to do next. Plain text; errors are written "+- 0.65".
#pragma once

#include <string>
#include <vector>

#include "report/record.h"

namespace mrrope::report {

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
