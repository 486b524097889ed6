// SPDX-License-Identifier: Apache-2.0
// What to generate, and what was generated.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer.h"

namespace mrrope {

// temperature 0 is greedy, and the default: evaluations must repeat.
struct Sampling {
  double temperature = 0;
  int top_k = 40;
  double top_p = 0.95;
  double min_p = 0.05;
  std::uint32_t seed = 1;
};

struct GenerateOptions {
  int max_tokens = 128;
  Sampling sampling;
  std::vector<std::string> stop;  // generation ends before the first of these
  // Called with each new piece of text (whole UTF-8 characters); false stops the generation. It
  // must not use the model.
  std::function<bool(std::string_view)> on_text;
};

struct Generation {
  std::string text;
  std::vector<Token> tokens;
  std::string finish;       // "stop" (end of text or a stop string), "length", "cancelled"
  double smallest_gap = 0;  // least difference of the top two logits over all greedy steps
};

}  // namespace mrrope
