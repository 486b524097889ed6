// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace mrrope::eval {

// ROUGE-Lsum, F1, as the Python package rouge_score computes it without stemming: sentences are
// lines; for each expected sentence the union of its longest common subsequences with all sentences
// of the text, every word counted no more often than both sides have it.
double rouge_lsum(std::string_view expected, std::string_view text);

}  // namespace mrrope::eval
