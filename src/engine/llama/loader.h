// SPDX-License-Identifier: Apache-2.0
// Files into models and contexts of libllama, with options in the words of its command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/llama/llama_api.h"
#include "engine/llama/local.h"

namespace mrrope::engine {

// A model from its file, or from all parts of a split one. Throws Error (unsupported) with
// libllama's reason.
LlamaPtr<llama_model> load_model(const std::vector<std::filesystem::path>& files, int gpu_layers);

// Its tokenizer alone: the weights are not read. Throws Error (unsupported).
LlamaPtr<llama_model> load_vocabulary(const std::filesystem::path& file);

// One shared cache for `tokens` tokens; threads, ubatch, cache types and flash attention as the
// options say. Throws Error (usage).
llama_context_params context_params(const LocalOptions& options, std::int64_t tokens);

// Throws Error (failed) with libllama's reason.
LlamaPtr<llama_context> make_context(llama_model* model, const llama_context_params& params);

// The type of a key-value cache by llama.cpp's name; flag is for the message. Throws Error (usage).
ggml_type cache_type(const std::string& name, const char* flag);

// -t, or all cores. Throws Error: usage, failed (so many threads cannot be started, which libllama
// does not survive).
int thread_count(const LocalOptions& options);

}  // namespace mrrope::engine
