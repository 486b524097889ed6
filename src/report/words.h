// SPDX-License-Identifier: Apache-2.0
// The verdict in words: which method, good to which length, what it costs at short length, how
// sure. Plain text; "+-" stands before an error.
#pragma once

#include <string>
#include <vector>

#include "report/record.h"

namespace mrrope {

struct VerdictWords {
  std::string model;
  std::string headline;
  std::vector<std::string> sentences;
  std::string method;        // the one the headline is about; empty: none
  std::int64_t good_to = 0;  // tokens; 0: no length beyond the window
};

// One per model and set of texts, from perplexity where it was measured, with the needles of the
// same model beside it.
std::vector<VerdictWords> verdicts_of(const std::vector<RunRecord>& records);

// "4.32 +- 0.65"
std::string estimate_text(const Estimate& e);

}  // namespace mrrope
