// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/stock.h"

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "engine/llama/llama_api.h"
#include "engine/llama/memory.h"
#include "mrrope/error.h"

namespace mrrope {
namespace {

LlamaPtr<llama_model> load(const std::vector<std::filesystem::path>& files,
                           const LocalOptions& options) {
  llama_model_params params = llama_model_default_params();
  params.n_gpu_layers = options.gpu_layers;
  std::vector<const char*> paths;
  for (const auto& file : files) paths.push_back(file.c_str());
  take_llama_log();
  LlamaPtr<llama_model> model(
      paths.size() == 1 ? llama_model_load_from_file(paths.front(), params)
                        : llama_model_load_from_splits(paths.data(), paths.size(), params));
  if (!model) {
    throw Error(ErrorKind::unsupported,
                cat("stock libllama refuses ", files.front().string(), ": ", take_llama_log()),
                "this llama.cpp is 0.5.0; the table of architectures is about that version");
  }
  return model;
}

LlamaPtr<llama_context> make_context(llama_model* model, const LocalOptions& options) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(options.context);
  params.n_batch = params.n_ubatch = static_cast<std::uint32_t>(options.ubatch);
  params.n_threads = options.threads > 0
                         ? options.threads
                         : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  params.n_threads_batch = params.n_threads;
  params.type_k = cache_type(options.type_k, "-ctk");
  params.type_v = cache_type(options.type_v, "-ctv");
  params.flash_attn_type = options.flash_attention == "off"  ? LLAMA_FLASH_ATTN_TYPE_DISABLED
                           : options.flash_attention == "on" ? LLAMA_FLASH_ATTN_TYPE_ENABLED
                                                             : LLAMA_FLASH_ATTN_TYPE_AUTO;
  params.kv_unified = true;
  params.swa_full = false;
  params.no_perf = true;
  take_llama_log();
  LlamaPtr<llama_context> context(llama_init_from_model(model, params));
  if (!context) {
    throw Error(ErrorKind::failed, cat("libllama cannot make a context of ", params.n_ctx,
                                       " tokens: ", take_llama_log()));
  }
  return context;
}

}  // namespace

std::vector<std::vector<float>> stock_logits(const std::vector<std::filesystem::path>& files,
                                             const std::vector<Token>& tokens,
                                             const std::vector<std::size_t>& wanted,
                                             const LocalOptions& options,
                                             const std::function<void(std::int64_t)>& on_tokens) {
  start_llama();
  const LlamaPtr<llama_model> model = load(files, options);
  const LlamaPtr<llama_context> context = make_context(model.get(), options);
  const auto vocabulary =
      static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model.get())));
  const std::size_t ubatch = llama_n_ubatch(context.get());
  std::vector<std::vector<float>> rows;
  std::size_t next = 0;
  for (std::size_t first = 0; first < tokens.size(); first += ubatch) {
    const std::size_t count = std::min(ubatch, tokens.size() - first);
    llama_batch batch = llama_batch_init(static_cast<int32_t>(count), 0, 1);
    batch.n_tokens = static_cast<int32_t>(count);
    std::vector<std::size_t> here;
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_wanted = next < wanted.size() && wanted[next] == first + i;
      batch.token[i] = tokens[first + i];
      batch.pos[i] = static_cast<llama_pos>(first + i);
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = is_wanted || i + 1 == count ? 1 : 0;  // some graphs need one
      if (is_wanted) here.push_back(i), ++next;
    }
    const int result = llama_decode(context.get(), batch);
    llama_batch_free(batch);
    if (result != 0) {
      throw Error(ErrorKind::failed, cat("libllama failed with ", result, " at position ", first,
                                         ": ", take_llama_log()));
    }
    for (const std::size_t i : here) {
      const float* row = llama_get_logits_ith(context.get(), static_cast<int32_t>(i));
      if (row == nullptr) throw Error(ErrorKind::failed, cat("no logits at position ", first + i));
      rows.emplace_back(row, row + vocabulary);
    }
    if (on_tokens) on_tokens(static_cast<std::int64_t>(count));
  }
  return rows;
}

}  // namespace mrrope
