// SPDX-License-Identifier: Apache-2.0
// The log-probability of a token in double, slow and obvious.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace mrrope::test {

inline double log_probability_reference(std::span<const float> logits, std::size_t target) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const float x : logits) {
    if (std::isnan(x)) return std::numeric_limits<double>::quiet_NaN();
    largest = std::max(largest, static_cast<double>(x));
  }
  if (!std::isfinite(largest)) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - largest);
  return static_cast<double>(logits[target]) - largest - std::log(sum);
}

}  // namespace mrrope::test
