// SPDX-License-Identifier: Apache-2.0
// Unmodified libllama: no callback and no plan. Exports are checked against it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <vector>

#include "engine/llama/local.h"

namespace mrrope::engine {

// Logits after each of the tokens listed in `wanted` (ascending), from a fresh context of
// options.context tokens. Only context, gpu_layers, threads, ubatch, cache types and flash
// attention of the options are read. Throws Error: unsupported where libllama refuses the file
// (with its words), failed. on_tokens: called with the tokens computed since the last call.
std::vector<std::vector<float>> stock_logits(
    const std::vector<std::filesystem::path>& files, const std::vector<Token>& tokens,
    const std::vector<std::size_t>& wanted, const LocalOptions& options,
    const std::function<void(std::int64_t)>& on_tokens = {});

}  // namespace mrrope::engine
