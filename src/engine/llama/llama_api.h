// SPDX-License-Identifier: Apache-2.0
// libllama with owning pointers, and its log kept instead of printed.
#pragma once

#include <llama.h>

#include <memory>
#include <string>

namespace mrrope::engine {

struct LlamaDeleter {
  void operator()(llama_model* p) const noexcept { llama_model_free(p); }
  void operator()(llama_context* p) const noexcept { llama_free(p); }
  void operator()(llama_sampler* p) const noexcept { llama_sampler_free(p); }
  void operator()(ggml_context* p) const noexcept { ggml_free(p); }
  void operator()(ggml_backend_buffer* p) const noexcept { ggml_backend_buffer_free(p); }
  void operator()(ggml_backend* p) const noexcept { ggml_backend_free(p); }
  void operator()(ggml_gallocr* p) const noexcept { ggml_gallocr_free(p); }
};
template <typename T>
using LlamaPtr = std::unique_ptr<T, LlamaDeleter>;

// Initialises the library, once, and redirects its log: it no longer prints. Call it before the
// first thread starts: it forks the process that runs chat templates.
void start_llama();

// The warnings and errors logged since the last call, joined into one line.
std::string take_llama_log();

// Where a tensor lives, and the device of such memory.
inline ggml_backend_buffer_t buffer_of(const ggml_tensor* tensor) {
  return tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
}
inline ggml_backend_dev_t device_of(ggml_backend_buffer_type_t type) {
  // ggml's plain memory names no device.
  return ggml_backend_buft_is_host(type) ? ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU)
                                         : ggml_backend_buft_get_device(type);
}

}  // namespace mrrope::engine
