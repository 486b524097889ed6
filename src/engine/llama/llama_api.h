// SPDX-License-Identifier: Apache-2.0
// libllama with owners instead of bare pointers, and its log kept instead of printed.
#pragma once

#include <llama.h>

#include <memory>
#include <string>

namespace mrrope {

struct LlamaDeleter {
  void operator()(llama_model* p) const noexcept { llama_model_free(p); }
  void operator()(llama_context* p) const noexcept { llama_free(p); }
  void operator()(llama_sampler* p) const noexcept { llama_sampler_free(p); }
  void operator()(ggml_context* p) const noexcept { ggml_free(p); }
  void operator()(ggml_backend_buffer* p) const noexcept { ggml_backend_buffer_free(p); }
  void operator()(ggml_backend* p) const noexcept { ggml_backend_free(p); }
};
template <typename T>
using LlamaPtr = std::unique_ptr<T, LlamaDeleter>;

// Starts the library once and takes its log over: nothing is printed any more.
void start_llama();

// The warnings and errors logged since the last call, joined into one line; empty where none were.
std::string take_llama_log();

}  // namespace mrrope
