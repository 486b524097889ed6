// SPDX-License-Identifier: Apache-2.0
// Continuing a timeline: choosing tokens, stopping, and handing out text in whole characters.
#include <algorithm>
#include <limits>

#include "core/text.h"
#include "engine/timeline.h"
#include "engine/utf8.h"
#include "mrrope/error.h"

namespace mrrope {

namespace {

// Chooses one token from logits. Greedy needs no help; the rest is libllama's own chain.
class Chooser {
 public:
  explicit Chooser(const Sampling& sampling) {
    if (sampling.temperature <= 0) return;
    chain_.reset(llama_sampler_chain_init(llama_sampler_chain_default_params()));
    const auto add = [&](llama_sampler* step) { llama_sampler_chain_add(chain_.get(), step); };
    if (sampling.top_k > 0) add(llama_sampler_init_top_k(sampling.top_k));
    add(llama_sampler_init_top_p(static_cast<float>(sampling.top_p), 1));
    add(llama_sampler_init_min_p(static_cast<float>(sampling.min_p), 1));
    add(llama_sampler_init_temp(static_cast<float>(sampling.temperature)));
    add(llama_sampler_init_dist(sampling.seed));
  }

  bool greedy() const noexcept { return chain_ == nullptr; }

  Token choose(std::span<const float> logits) {
    candidates_.resize(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      candidates_[i] = {static_cast<llama_token>(i), logits[i], 0};
    }
    llama_token_data_array list{candidates_.data(), candidates_.size(), -1, false};
    llama_sampler_apply(chain_.get(), &list);
    const Token token = list.data[list.selected].id;
    llama_sampler_accept(chain_.get(), token);
    return token;
  }

 private:
  LlamaPtr<llama_sampler> chain_;
  std::vector<llama_token_data> candidates_;
};

std::string piece_of(const llama_vocab* vocab, Token token) {
  if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) return {};  // tokens only
  std::string piece(64, '\0');
  int32_t length = llama_token_to_piece(vocab, token, piece.data(),
                                        static_cast<int32_t>(piece.size()), 0, false);
  if (length < 0) {
    piece.resize(static_cast<std::size_t>(-length));
    length = llama_token_to_piece(vocab, token, piece.data(), static_cast<int32_t>(piece.size()), 0,
                                  false);
  }
  piece.resize(static_cast<std::size_t>(std::max(length, 0)));
  return piece;
}

}  // namespace

Generation LocalTimeline::generate(const GenerateOptions& options) {
  Generation result;
  TextStream stream(options.stop);
  Chooser chooser(options.sampling);
  float smallest_gap = std::numeric_limits<float>::infinity();
  result.finish = "length";
  const std::int64_t room = model_.longest() - length();
  const auto most = std::min<std::int64_t>(options.max_tokens, room);
  ensure_logits();
  std::span<const float> logits = last_logits_;
  while (static_cast<std::int64_t>(result.tokens.size()) < most) {
    const TopTwo top = top_two(logits);
    if (!top.valid) throw Error(ErrorKind::failed, cat("NaN logits after position ", length() - 1));
    smallest_gap = std::min(smallest_gap, top.gap);
    const Token token = chooser.greedy() ? static_cast<Token>(top.best) : chooser.choose(logits);
    if (llama_vocab_is_eog(model_.vocab(), token)) {
      result.finish = "stop";
      break;
    }
    result.tokens.push_back(token);
    logits = step(token);
    const std::string fresh = stream.add(piece_of(model_.vocab(), token));
    result.text += fresh;
    if (!fresh.empty() && options.on_text && !options.on_text(fresh)) {
      result.finish = "cancelled";
      break;
    }
    if (stream.stopped()) {
      result.finish = "stop";
      break;
    }
  }
  if (!result.tokens.empty()) last_logits_.assign(logits.begin(), logits.end());
  const std::string rest = stream.finish();
  result.text += rest;
  if (!rest.empty() && options.on_text && result.finish != "cancelled") options.on_text(rest);
  if (chooser.greedy() && !result.tokens.empty()) result.smallest_gap = smallest_gap;
  return result;
}

}  // namespace mrrope
