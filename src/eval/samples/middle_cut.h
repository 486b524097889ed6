// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/samples/prompt_frame.h"

namespace mrrope {

struct CutPrompt {
  std::string text;
  std::vector<Token> tokens;
  std::int64_t whole = 0;  // tokens before the cut
  bool cut = false;
};

// A prompt of at most `room` tokens. A longer one keeps the first and the last half of what its
// body may take; template, prefix and BOS stay whole. As the original benchmarks do it, the halves
// are turned into text and that is tokenized again.
CutPrompt cut_in_the_middle(const Tokenizer& model, const PromptFrame& frame,
                            const std::string& body, const std::string& prefix, std::int64_t room);

}  // namespace mrrope
