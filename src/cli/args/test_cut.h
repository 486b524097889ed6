// SPDX-License-Identifier: Apache-2.0
// Only for the tests of this project: MRROPE_TEST_CUT=D[,S[,F]] makes the texts of a run short
// while its command stays as it is. Plans are made for the lengths that were asked for, so scales
// stay too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mrrope::cli {

// F + length / D tokens are run instead of this many. The same number if the variable is not set.
// Throws Error (usage) on a variable that cannot be read, or if nothing is left.
std::int64_t cut_length(std::int64_t length);

// samples / S, at least 1; 0 (all) stays 0.
std::size_t cut_samples(std::size_t samples);

}  // namespace mrrope::cli
