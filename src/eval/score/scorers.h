// SPDX-License-Identifier: Apache-2.0
// Scores of answers, from 0 to 1. Each benchmark has its own rules (SampleRules), reproduced
// exactly, including their quirks; where they are known to misjudge, a lenient score is reported
// next to the official one. tests/golden/scorers.json holds what the original scorers say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mrrope::eval {

struct Score {
  std::string metric;
  double value = 0;
};

// RULER: the share of expected strings that occur, ignoring case; or whether one of them does.
double string_match_all(const std::vector<std::string>& expected, std::string_view text);
double string_match_part(const std::vector<std::string>& expected, std::string_view text);

// Throws Error (corrupt): run.json names a scorer that its task does not have.
[[noreturn]] void unknown_scorer(const std::string& name);

}  // namespace mrrope::eval
