// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/loader.h"

#include <gguf.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <thread>
#include <unordered_set>

#include "base/text.h"
#include "mrrope/error.h"
#include "mrrope/rotary.h"

namespace mrrope::engine {

namespace {

constexpr int kMostThreads = GGML_MAX_N_THREADS;

llama_flash_attn_type flash_attention(const std::string& name) {
  if (name == "on") return LLAMA_FLASH_ATTN_TYPE_ENABLED;
  if (name == "off") return LLAMA_FLASH_ATTN_TYPE_DISABLED;
  if (name == "auto") return LLAMA_FLASH_ATTN_TYPE_AUTO;
  throw Error(ErrorKind::usage, cat("-fa ", name, " is not on, off or auto"),
              "give -fa on, -fa off or -fa auto");
}

// With this pre-tokenizer, which belongs to models of embeddings, libllama aborts on a text with
// two blanks in a row.
void check_tokenizer(const llama_model* model, const std::string& file) {
  char pre[32] = "";
  llama_model_meta_val_str(model, "tokenizer.ggml.pre", pre, sizeof pre);
  if (std::string_view(pre) != "whitespace") return;
  throw Error(ErrorKind::unsupported,
              cat("the tokenizer of ", file, " (whitespace) is not supported"),
              "use a model that generates text");
}

struct FreeGguf {
  void operator()(gguf_context* owned) const { gguf_free(owned); }
};

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Values that libllama takes from a file and later asserts on.
void check_asserted(const std::filesystem::path& file) {
  const std::unique_ptr<gguf_context, FreeGguf> gguf(gguf_init_from_file(file.c_str(), {true, {}}));
  if (!gguf) return;  // libllama says why
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::corrupt, cat(file.string(), ": ", what),
                "download or convert the model again");
  };
  for (std::int64_t i = 0; i < gguf_get_n_kv(gguf.get()); ++i) {
    const std::string_view key = gguf_get_key(gguf.get(), i);
    if (!ends_with(key, "epsilon") || gguf_get_kv_type(gguf.get(), i) != GGUF_TYPE_FLOAT32) {
      continue;
    }
    const float epsilon = gguf_get_val_f32(gguf.get(), i);
    if (!(epsilon >= 0)) refuse(cat(key, " is ", double(epsilon), ", below 0"));
  }
  for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf.get()); ++i) {
    const std::string_view name = gguf_get_tensor_name(gguf.get(), i);
    const ggml_type type = gguf_get_tensor_type(gguf.get(), i);
    if (type == GGML_TYPE_F32 || !(ends_with(name, "norm.weight") || ends_with(name, "norm.bias")))
      continue;
    refuse(cat(name, " is of type ", ggml_type_name(type), ", but norms are f32"));
  }
  const std::int64_t tokens = gguf_find_key(gguf.get(), "tokenizer.ggml.tokens");
  if (tokens < 0 || gguf_get_kv_type(gguf.get(), tokens) != GGUF_TYPE_ARRAY ||
      gguf_get_arr_type(gguf.get(), tokens) != GGUF_TYPE_STRING) {
    return;
  }
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < gguf_get_arr_n(gguf.get(), tokens); ++i) {
    const std::string_view token = gguf_get_arr_str(gguf.get(), tokens, i);
    if (token.empty() || seen.insert(token).second) continue;  // empty ones get names of their own
    refuse(cat("token ", i, " of the vocabulary repeats an earlier one"));
  }
}

LlamaPtr<llama_model> load(const std::vector<std::filesystem::path>& files,
                           const llama_model_params& params, const char* what,
                           const std::string& hint) {
  start_llama();
  for (const auto& file : files) check_asserted(file);
  std::vector<const char*> paths;
  for (const auto& file : files) paths.push_back(file.c_str());
  take_llama_log();
  LlamaPtr<llama_model> model(
      paths.size() == 1 ? llama_model_load_from_file(paths.front(), params)
                        : llama_model_load_from_splits(paths.data(), paths.size(), params));
  const std::string name = files.front().string();
  if (!model) {
    throw Error(ErrorKind::unsupported,
                cat("libllama cannot ", what, " ", name, ": ", take_llama_log()), hint);
  }
  check_tokenizer(model.get(), name);
  return model;
}

}  // namespace

LlamaPtr<llama_model> load_model(const std::vector<std::filesystem::path>& files, int gpu_layers) {
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = gpu_layers;
  return load(files, params, "load",
              cat("check the file with mrrope inspect; this is llama.cpp ", llama_version()));
}

LlamaPtr<llama_model> load_vocabulary(const std::filesystem::path& file) {
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  return load({file}, params, "read the vocabulary of",
              "give --vocab a GGUF file of the served model, of any quantization");
}

llama_context_params context_params(const LocalOptions& options, std::int64_t tokens) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(tokens);
  params.n_batch = static_cast<std::uint32_t>(options.ubatch);
  params.n_ubatch = params.n_batch;
  params.n_threads = thread_count(options);
  params.n_threads_batch = params.n_threads;
  params.flash_attn_type = flash_attention(options.flash_attention);
  params.type_k = cache_type(options.type_k, "-ctk");
  params.type_v = cache_type(options.type_v, "-ctv");
  params.kv_unified = options.unified;
  params.no_perf = true;
  return params;
}

LlamaPtr<llama_context> make_context(llama_model* model, const llama_context_params& params) {
  take_llama_log();
  LlamaPtr<llama_context> context(llama_init_from_model(model, params));
  if (!context) {
    throw Error(ErrorKind::failed, cat("libllama cannot make a context of ", params.n_ctx,
                                       " tokens: ", take_llama_log()));
  }
  return context;
}

ggml_type cache_type(const std::string& name, const char* flag) {
  for (const ggml_type type :
       {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q5_1,
        GGML_TYPE_Q5_0, GGML_TYPE_Q4_1, GGML_TYPE_Q4_0, GGML_TYPE_IQ4_NL}) {
    if (name == ggml_type_name(type)) return type;
  }
  throw Error(ErrorKind::usage, cat(flag, " ", name, " is not a type of a key-value cache"),
              "give f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl");
}

int thread_count(const LocalOptions& options) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (options.threads == 0) return std::min(cores, kMostThreads);
  if (options.threads < 0 || options.threads > kMostThreads) {
    throw Error(ErrorKind::usage,
                cat("-t ", options.threads, " is not between 0 and ", kMostThreads),
                "remove -t to use all cores");
  }
  // libllama starts its threads and mrrope as many for scores; libllama ends the process if one of
  // them does not start.
  if (options.threads > cores) Workers trial(2 * options.threads);
  return options.threads;
}

}  // namespace mrrope::engine
