// SPDX-License-Identifier: Apache-2.0
// Refusing what will not fit, with what would.
#pragma once

#include <string>

#include "engine/llama/llama_api.h"
#include "engine/llama/local.h"

namespace mrrope {

// Throws Error (out_of_memory) with the figures and what would fit instead.
void check_memory(const Model& model, const LocalOptions& options);

// The type of a key-value cache by llama.cpp's name; flag is for the message. Throws Error (usage).
ggml_type cache_type(const std::string& name, const char* flag);

// Whether sliding-window layers keep every token.
bool keeps_windows_whole(const LocalOptions& options) noexcept;

}  // namespace mrrope
