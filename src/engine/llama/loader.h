// SPDX-License-Identifier: Apache-2.0
// libllama with owning pointers: starting it, its log, kept instead of printed, and files into its
// models and contexts, with options in the words of its command line.
#pragma once

#include <llama.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/llama/local.h"

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

// Its log is no longer printed.
void keep_llama_log();
// The warnings and errors logged since the last call, joined into one line.
std::string take_llama_log();

// Where a tensor lives; the device of such memory.
inline ggml_backend_buffer_t buffer_of(const ggml_tensor* tensor) {
  return tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
}
inline ggml_backend_dev_t device_of(ggml_backend_buffer_type_t type) {
  // ggml's plain memory names no device.
  return ggml_backend_buft_is_host(type) ? ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU)
                                         : ggml_backend_buft_get_device(type);
}

// Devices of other machines, through llama.cpp's RPC backend, whose servers the user starts:
// "host:port,host:port". The devices are added to those of this process, permanently. The backend
// ends the process if a server does not answer, so each is contacted first. Throws Error: usage
// (not host:port), failed (no connection, or not an RPC server), unsupported (another version).
void add_rpc_servers(const std::string& list);

// A model from its file, or from all parts of a split one; or its tokenizer alone, without reading
// the weights. Throw Error (unsupported) with libllama's reason. devices: of chosen_devices().
LlamaPtr<llama_model> load_model(const std::vector<std::filesystem::path>& files, int gpu_layers,
                                 std::vector<ggml_backend_dev_t> devices = {});
LlamaPtr<llama_model> load_vocabulary(const std::filesystem::path& file);

// For `tokens` tokens, otherwise as the options say. Throws Error (usage).
llama_context_params context_params(const LocalOptions& options, std::int64_t tokens);
// Throws Error (failed) with libllama's reason.
LlamaPtr<llama_context> make_context(llama_model* model, const llama_context_params& params);

// The type of a key-value cache by llama.cpp's name; flag is for the message. Throws Error (usage).
ggml_type cache_type(const std::string& name, const char* flag);

// -t, or all cores. Throws Error: usage, failed (so many threads cannot be started, which libllama
// does not survive).
int thread_count(const LocalOptions& options);

}  // namespace mrrope::engine
