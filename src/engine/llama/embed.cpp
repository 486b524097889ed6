// SPDX-License-Identifier: Apache-2.0
// Embeddings: the unmodified model, in a small context of its own.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.h"
#include "engine/llama/local_model.h"

namespace mrrope::engine {

namespace {

// As the flag or the file says; otherwise there is none, as in llama-server.
int pooling_of(const llama_model* model, const Model& facts, const std::string& flag) {
  char type[16];
  const std::string key = facts.architecture + ".pooling_type";
  const bool stated = llama_model_meta_val_str(model, key.c_str(), type, sizeof type) >= 0;
  const std::string text = !flag.empty() ? flag : stated ? type : "";
  if (text == "1" || text == "mean") return LLAMA_POOLING_TYPE_MEAN;
  if (text == "2" || text == "cls") return LLAMA_POOLING_TYPE_CLS;
  if (text == "3" || text == "last") return LLAMA_POOLING_TYPE_LAST;
  unsupported(cat("this model has no embeddings of texts: its file states ",
                  stated ? cat(key, " ", text) : "no " + key),
              "serve a model that was made for embeddings, or give --pooling mean, cls (the first "
              "token) or last");
}

}  // namespace

// With room for this many tokens.
void LocalModel::make_embedder(std::size_t tokens) {
  constexpr std::size_t kSmallest = 512;
  const std::int64_t window = facts_.geometry.train_length;
  embedder_.reset();
  LocalOptions options = options_;
  options.context = std::min(window, std::int64_t(std::bit_ceil(std::max(tokens, kSmallest))));
  options.timelines = 1;
  options.unified = true;
  const MemoryPlan memory = plan_memory(facts_, options);
  throw_if(
      memory.kv + memory.compute > memory.available, ErrorKind::out_of_memory,
      cat("embeddings of ", tokens, " tokens need ", bytes_text(double(memory.kv + memory.compute)),
          " more memory; ", bytes_text(double(memory.available)), " are free"),
      "embed shorter texts, or give a smaller --ctx or --parallel");
  llama_context_params params = context_params(options, options.context);
  params.swa_full = keeps_windows_whole(options);
  params.embeddings = true;
  params.pooling_type = LLAMA_POOLING_TYPE_NONE;  // a long text takes several computations
  embedder_ = make_context(model_.get(), params);
}

std::vector<float> LocalModel::embed(std::span<const Token> tokens) {
  // With an encoder; or with more numbers than libllama computes, which ends the process
  // (qwen4exp).
  unsupported_if(llama_model_has_encoder(model_.get()) ||
                     llama_model_n_embd_out(model_.get()) > llama_model_n_embd(model_.get()),
                 cat("libllama has no embeddings of texts by ", facts_.architecture, " models"));
  const int pooling = pooling_of(model_.get(), facts_, options_.pooling);
  std::int64_t longest = facts_.geometry.train_length;
  // Where every token reads all others they have to be computed at once.
  if (!llama_get_causal_attn(context_.get())) longest = std::min<std::int64_t>(longest, ubatch_);
  refuse_if(
      tokens.empty() || std::ssize(tokens) > longest,
      cat("a text of ", tokens.size(), " tokens: this model embeds 1 to ", longest, " at a time"));
  for (const Token token : tokens) check_token(token);
  if (!embedder_ || tokens.size() > llama_n_ctx(embedder_.get())) make_embedder(tokens.size());
  llama_memory_clear(llama_get_memory(embedder_.get()), false);
  std::vector<Token> own(tokens.begin(), tokens.end());  // libllama does not take constant ones
  std::vector<double> sum(std::size_t(llama_model_n_embd_out(model_.get())));
  const std::size_t most = llama_n_ubatch(embedder_.get());
  for (std::size_t at = 0; at < own.size(); ++at) {
    const std::size_t first = at / most * most;
    if (at == first) {
      const auto count = int32_t(std::min(most, own.size() - first));
      take_llama_log();
      const int result = llama_decode(embedder_.get(), llama_batch_get_one(&own[first], count));
      if (result != 0) fail(cat("libllama failed with ", result, ": ", take_llama_log()));
    }
    if (pooling == LLAMA_POOLING_TYPE_LAST && at + 1 < own.size()) continue;
    if (pooling == LLAMA_POOLING_TYPE_CLS && at > 0) break;
    const float* const row = llama_get_embeddings_ith(embedder_.get(), int32_t(at - first));
    if (row == nullptr) fail("libllama has no embedding of a token");
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += double(row[k]);
  }
  double square = 0;
  for (const double value : sum) square += value * value;
  if (!std::isfinite(square)) throw NanLogits("the model's embedding of this text is NaN");
  const double length = square > 0 ? std::sqrt(square) : 1;
  std::vector<float> unit;
  for (const double value : sum) unit.push_back(float(value / length));
  return unit;
}

}  // namespace mrrope::engine
