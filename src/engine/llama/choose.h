// SPDX-License-Identifier: Apache-2.0
// Choosing one token from logits: greedily, or by libllama's own chain of samplers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "model/timeline_model.h"

namespace mrrope::engine {

class Chooser {
 public:
  explicit Chooser(const Sampling& sampling);
  ~Chooser();
  Chooser(Chooser&&) noexcept;
  Chooser& operator=(Chooser&&) noexcept;

  bool greedy() const noexcept { return chain_ == nullptr; }

  struct Choice {
    Token token;
    float gap;  // the top logit less the next one
  };
  // The logits follow `position`, for the message. Throws Error (failed) where one is NaN.
  Choice choose(std::span<const float> logits, std::int64_t position);

 private:
  struct Chain;
  std::unique_ptr<Chain> chain_;  // none: greedy
};

}  // namespace mrrope::engine
