// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/stock.h"

#include <algorithm>

#include "base/text.h"
#include "engine/llama/loader.h"
#include "mrrope/error.h"

namespace mrrope::engine {

std::vector<std::vector<float>> stock_logits(const std::vector<std::filesystem::path>& files,
                                             const std::vector<Token>& tokens,
                                             const std::vector<std::size_t>& wanted,
                                             const LocalOptions& options,
                                             const std::function<void(std::int64_t)>& on_tokens) {
  const LlamaPtr<llama_model> model = load_model(files, options.gpu_layers);
  llama_context_params params = context_params(options, options.context);
  params.swa_full = false;
  const LlamaPtr<llama_context> context = make_context(model.get(), params);
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

}  // namespace mrrope::engine
