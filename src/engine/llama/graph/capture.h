// SPDX-License-Identifier: Apache-2.0
// Queries and keys of a real model before they are rotated, read from its graph through the
// evaluation callback. Has its own context: nothing here touches a model that is under a ladder.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/llama/local.h"

namespace mrrope {

struct CapturedLayer {
  int layer = 0;
  int heads = 0;
  int kv_heads = 0;
  int row = 0;                 // numbers per head vector; the first rotary_dim are rotated
  std::vector<float> queries;  // [token][head][row]
  std::vector<float> keys;     // [token][kv_head][row]
};

struct Capture {
  std::int64_t tokens = 0;
  std::vector<CapturedLayer> layers;
};

// Reads the first `tokens` tokens of the text (BOS included) as the model was shipped and keeps the
// queries and keys of these layers; no layers given: four, evenly spread. Throws Error: usage (a
// text too short, a layer that does not rotate or is not there), unsupported, failed.
Capture capture_attention(const Model& model, const LocalOptions& options, std::string_view text,
                          std::int64_t tokens, std::vector<int> layers);

}  // namespace mrrope
