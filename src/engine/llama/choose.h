// SPDX-License-Identifier: Apache-2.0
// Log-probabilities from logits, and choosing one token: greedily, or by libllama's own chain of
// samplers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "model/timeline_model.h"

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

class Chooser {
 public:
  // From any thread. Throws Error: unsupported (a grammar, where the model's tokens are not known),
  // usage (a grammar that cannot be read or is too ambiguous).
  Chooser(const Sampling& sampling, const TimelineModel& model);

  // Whether it takes the most likely token, whatever was said before.
  bool greedy() const noexcept { return chain_ == nullptr; }

  // The tokens before the answer, which penalties count too.
  void read(std::span<const Token> tokens);

  struct Choice {
    Token token;
    float gap;  // the top logit less the next one
  };
  // The logits follow `position`, for the message. Throws NanLogits, or Error (usage) where no
  // token is left and where the grammar is too ambiguous.
  Choice choose(std::span<const float> logits, std::int64_t position);

 private:
  struct Chain;
  std::shared_ptr<Chain> chain_;  // none: greedy
};

}  // namespace mrrope::engine
