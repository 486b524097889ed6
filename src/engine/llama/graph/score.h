// SPDX-License-Identifier: Apache-2.0
// Log-probabilities from logits.
#pragma once

#include <cstddef>
#include <span>

namespace mrrope::engine {

// ln softmax(logits)[target]. NaN if any logit is NaN or plus infinity; minus infinity is the
// ordinary logit of an impossible token. Exponentials in float (relative error below 3e-7), sums in
// double. Throws nothing; target must be inside the span.
double log_probability(std::span<const float> logits, std::size_t target) noexcept;

struct TopTwo {
  std::size_t best = 0;  // the lowest index among equals
  float gap = 0;         // its logit less the next one; 0 for a vocabulary of one
  bool valid = false;    // false: a NaN was among the logits
};
TopTwo top_two(std::span<const float> logits) noexcept;

}  // namespace mrrope::engine
