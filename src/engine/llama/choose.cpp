// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/choose.h"

#include <vector>

#include "base/text.h"
#include "engine/llama/graph/score.h"
#include "engine/llama/llama_api.h"
#include "model/timeline_model.h"

namespace mrrope::engine {

struct Chooser::Chain {
  LlamaPtr<llama_sampler> samplers;
  std::vector<llama_token_data> candidates;
};

Chooser::Chooser(const Sampling& sampling) {
  if (sampling.temperature <= 0) return;
  chain_ = std::make_unique<Chain>();
  chain_->samplers.reset(llama_sampler_chain_init(llama_sampler_chain_default_params()));
  const auto add = [&](llama_sampler* step) {
    llama_sampler_chain_add(chain_->samplers.get(), step);
  };
  if (sampling.top_k > 0) add(llama_sampler_init_top_k(sampling.top_k));
  add(llama_sampler_init_top_p(static_cast<float>(sampling.top_p), 1));
  add(llama_sampler_init_min_p(static_cast<float>(sampling.min_p), 1));
  add(llama_sampler_init_temp(static_cast<float>(sampling.temperature)));
  add(llama_sampler_init_dist(sampling.seed));
}

Chooser::~Chooser() = default;
Chooser::Chooser(Chooser&&) noexcept = default;
Chooser& Chooser::operator=(Chooser&&) noexcept = default;

Chooser::Choice Chooser::choose(std::span<const float> logits, std::int64_t position) {
  const TopTwo top = top_two(logits);
  if (!top.valid) throw NanLogits(cat("NaN logits after position ", position));
  if (greedy()) return {static_cast<Token>(top.best), top.gap};
  std::vector<llama_token_data>& candidates = chain_->candidates;
  candidates.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    candidates[i] = {static_cast<llama_token>(i), logits[i], 0};
  }
  llama_token_data_array list{candidates.data(), candidates.size(), -1, false};
  llama_sampler_apply(chain_->samplers.get(), &list);
  const Token token = list.data[list.selected].id;
  llama_sampler_accept(chain_->samplers.get(), token);
  return {token, top.gap};
}

}  // namespace mrrope::engine
