// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <numbers>

namespace mrrope {

// The real-valued index at which a pair of plain RoPE makes this many turns in `length` tokens.
inline double plain_pair_with_turns(int rotary_dim, double base, double length, double turns) {
  return rotary_dim * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
}

}  // namespace mrrope
