// SPDX-License-Identifier: Apache-2.0
// Queries and keys of a real model before they are rotated, read from its graph through the
// evaluation callback. Has its own context: nothing here touches a model that is under a ladder.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/llama/local.h"
#include "model/captured.h"

namespace mrrope::engine {

// Reads the first `tokens` tokens of the text (BOS included) with the unmodified model and keeps
// the queries and keys of these layers; no layers given: four, evenly spread. Throws Error: usage
// (a text too short, a layer that does not rotate or is not there), unsupported, failed.
Capture capture_attention(const Model& model, LocalOptions options, std::string_view text,
                          std::int64_t tokens, std::vector<int> layers);

}  // namespace mrrope::engine
