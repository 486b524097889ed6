// SPDX-License-Identifier: Apache-2.0
// libllama on its own, as the engine runs it under exact_options(): what plans are compared with.
#pragma once

#include <functional>
#include <span>

#include "engine/llama/loader.h"
#include "support/observe.h"

namespace mrrope::test {

// The logits after every token, in a context with this change. The last `singles` tokens are
// computed one by one, those before them in ubatches.
inline Rows stock_rows(const std::filesystem::path& path, const engine::LocalOptions& options,
                       std::vector<Token> tokens,
                       const std::function<void(llama_context_params&)>& change = {},
                       std::size_t singles = 0) {
  const engine::LlamaPtr<llama_model> model = engine::load_model({path}, options.gpu_layers);
  llama_context_params params = engine::context_params(options, options.context);
  params.swa_full = false;
  if (change) change(params);
  const engine::LlamaPtr<llama_context> context = engine::make_context(model.get(), params);
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
  const std::size_t together = tokens.size() - singles;
  Rows rows;
  while (rows.size() < tokens.size()) {
    const std::size_t first = rows.size();
    const std::size_t count =
        first < together ? std::min(std::size_t(options.ubatch), together - first) : 1;
    llama_batch batch = llama_batch_get_one(tokens.data() + first, std::int32_t(count));
    std::vector<std::int8_t> outputs(count, 1);
    batch.logits = outputs.data();
    EXPECT_EQ(llama_decode(context.get(), batch), 0);
    for (std::size_t i = 0; i < count; ++i) {
      const float* row = llama_get_logits_ith(context.get(), std::int32_t(i));
      rows.emplace_back(row, row + vocabulary);
    }
  }
  return rows;
}

}  // namespace mrrope::test
