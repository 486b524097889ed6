// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mrrope {

// The real-valued index at which a pair of plain RoPE makes this many turns in `length` tokens.
inline double plain_pair_with_turns(int rotary_dim, double base, double length, double turns) {
  return rotary_dim * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
}

// YaRN's ramp over pairs, as engines compute it: 0 up to `low`, 1 from `high` on.
struct YarnRamp {
  double low = 0;
  double high = 0;
  double at(double pair) const {
    return std::clamp((pair - low) / (high > low ? high - low : 0.001), 0.0, 1.0);
  }
};
inline YarnRamp yarn_ramp(int rotary_dim, double base, double length, double beta_fast,
                          double beta_slow, bool truncate = true) {
  double low = plain_pair_with_turns(rotary_dim, base, length, beta_fast);
  double high = plain_pair_with_turns(rotary_dim, base, length, beta_slow);
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  return {std::max(0.0, low), std::min(rotary_dim - 1.0, high)};
}

}  // namespace mrrope
