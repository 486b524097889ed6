// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/samples/prompt_frame.h"

namespace mrrope::eval {

struct CutPrompt {
  std::string text;
  std::vector<Token> tokens;
  std::int64_t whole = 0;  // tokens before the cut
  bool cut = false;
};

// A prompt of at most `room` tokens. A longer one keeps the first and the last part of its body,
// half of the room each; template, prefix and BOS are kept. As in the original benchmarks, the
// halves are turned into text, which is tokenized again.
CutPrompt cut_in_the_middle(const Tokenizer& model, const PromptFrame& frame,
                            const std::string& body, const std::string& prefix, std::int64_t room);

}  // namespace mrrope::eval
