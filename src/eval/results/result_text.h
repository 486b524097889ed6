// SPDX-License-Identifier: Apache-2.0
// A result table on a terminal. Plain ASCII.
#pragma once

#include <string>

#include "eval/results/result_table.h"

namespace mrrope::eval {

// Everything: tables, comparisons at the longest length, verdicts, remarks. shaded: heat maps with
// a coloured background, for terminals that know 256 colours.
std::string to_text(const ResultTable& table, bool shaded = false);

// One of its tables, with its heading.
std::string to_text(const ResultTable& table, const TextTable& part, bool shaded = false);

// "12.3 +-0.4": 100 times a score, "-" where there is none.
std::string percent_score(const Estimate& score);

}  // namespace mrrope::eval
