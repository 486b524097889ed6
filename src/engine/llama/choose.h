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
  // From any thread. Throws Error: unsupported (a grammar, where the model's tokens are not known),
  // usage (a grammar that cannot be read or is too ambiguous).
  Chooser(const Sampling& sampling, const TimelineModel& model);
  ~Chooser();
  Chooser(Chooser&&) noexcept;
  Chooser& operator=(Chooser&&) noexcept;

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
  std::unique_ptr<Chain> chain_;  // none: greedy
};

}  // namespace mrrope::engine
