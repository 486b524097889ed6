// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/choose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <regex>
#include <vector>

#include "base/text.h"
#include "engine/chat/grammar.h"
#include "engine/llama/loader.h"
#include "model/timeline_model.h"

namespace mrrope::engine {

namespace {

// The end of an answer in which triggers are looked for. The standard library's expressions take
// stack for every character.
constexpr std::size_t kTriggerBytes = 2048;

// Logits divided by less overflow a float. The limit is the likeliest token.
constexpr double kColdest = 1e-30;

bool has_penalties(const Sampling& s) {
  return s.repeat_last_n != 0 &&
         (s.repeat_penalty != 1 || s.frequency_penalty != 0 || s.presence_penalty != 0);
}

bool is_plain(const Sampling& s) {
  return s.typical_p >= 1 && !has_penalties(s) && s.bias.empty() && !s.ignore_end &&
         s.grammar.text.empty();
}

std::vector<llama_logit_bias> biases(const Sampling& sampling, const TimelineModel& model) {
  std::vector<llama_logit_bias> list;
  for (const auto& [token, bias] : sampling.bias) list.push_back({token, bias});
  if (sampling.ignore_end) {
    for (Token token = 0; token < model.vocabulary(); ++token) {
      if (model.ends_text(token)) list.push_back({token, -std::numeric_limits<float>::infinity()});
    }
  }
  return list;
}

}  // namespace

// A grammar, and whether the answer has come to where it holds.
class Constraint {
 public:
  Constraint(const Grammar& grammar, const TimelineModel& model)
      : texts_(texts_of(model)),
        model_(model),
        reader_(grammar.text),
        waiting_(grammar.lazy),
        triggers_(grammar.tokens),
        patterns_(grammar.patterns.begin(), grammar.patterns.end()) {
    if (waiting_) return;
    for (const Token token : grammar.begun) {
      fail_if(model.ends_text(token), "the prompt ends with the end of a text",
              "this chat template cannot be used with a grammar");
      reader_.accept(token, text(token));
    }
  }

  void begin_token() { reader_.grant_work(); }

  bool allows(Token token) {
    if (waiting_) return true;
    return model_.ends_text(token) ? reader_.may_end() : reader_.allows(token, text(token));
  }

  void apply(llama_token_data_array& list) {
    if (waiting_) return;
    const std::vector<bool> allowed = reader_.allowed(texts_);
    for (llama_token_data& one : std::span(list.data, list.size)) {
      const bool fits = model_.ends_text(one.id) ? reader_.may_end() : allowed[std::size_t(one.id)];
      if (!fits) one.logit = -std::numeric_limits<float>::infinity();
    }
  }

  void accept(Token token) {
    if (waiting_) return wait(token);
    if (!model_.ends_text(token)) reader_.accept(token, text(token));
  }

 private:
  static const TokenTexts& texts_of(const TimelineModel& model) {
    if (const TokenTexts* texts = model.token_texts()) return *texts;
    unsupported("this engine cannot constrain an answer to a grammar", "leave the grammar out");
  }

  const std::string& text(Token token) const { return texts_.text.at(std::size_t(token)); }

  // Where what a pattern matches begins in the text, or its first group.
  static std::optional<std::size_t> begin_of(const std::regex& pattern, const std::string& text,
                                             bool whole) {
    std::smatch match;
    const auto flags =
        whole ? std::regex_constants::match_default : std::regex_constants::match_not_bol;
    if (!std::regex_search(text, match, pattern, flags)) return std::nullopt;
    std::size_t group = 1;
    while (group < match.size() && match.length(group) == 0) ++group;
    return std::size_t(match.position(group < match.size() ? group : 0));
  }

  void wait(Token token) {
    written_.push_back(token);
    if (has(triggers_, token)) return start(text(token).size());
    std::string end;
    auto first = written_.end();
    while (first != written_.begin() && end.size() < kTriggerBytes) end.insert(0, text(*--first));
    const bool whole = !cut_ && first == written_.begin();
    cut_ = !whole;
    written_.erase(written_.begin(), first);
    for (const std::regex& pattern : patterns_) {
      if (const auto at = begin_of(pattern, end, whole)) return start(end.size() - *at);
    }
  }

  // The last bytes of the answer are the first that the grammar describes.
  void start(std::size_t bytes) {
    waiting_ = false;
    std::size_t first = written_.size();
    std::size_t held = 0;
    while (first > 0 && held < bytes) held += text(written_[--first]).size();
    for (; first < written_.size(); ++first) {
      const std::string& whole = text(written_[first]);
      const std::size_t skipped = held > bytes ? held - bytes : 0;
      held -= skipped;
      reader_.accept(written_[first], std::string_view(whole).substr(skipped));
    }
  }

  const TokenTexts& texts_;
  const TimelineModel& model_;
  GrammarReader reader_;
  bool waiting_;  // for a trigger
  std::vector<Token> triggers_;
  std::vector<std::regex> patterns_;
  std::vector<Token> written_;  // the last ones
  bool cut_ = false;            // there were more
};

struct Chooser::Chain {
  LlamaPtr<llama_sampler> samplers;
  std::unique_ptr<Constraint> grammar;  // may be null
  int counted = 0;                      // of the last tokens, by penalties
  bool plain = true;                    // nothing can leave it without a token to choose
  // Greedy, and all that differs from the logits is that these cannot be chosen.
  bool only_bans = false;
  std::vector<Token> banned;
  std::vector<llama_token_data> candidates;

  llama_token_data_array list(std::span<const float> logits) {
    candidates.resize(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) candidates[i] = {llama_token(i), logits[i], 0};
    return {candidates.data(), candidates.size(), -1, false};
  }

  // The token that the samplers choose; -1 where none is left.
  Token sample(llama_token_data_array& list) {
    const auto possible = [](const llama_token_data& c) { return std::isfinite(c.logit); };
    if (!plain && std::none_of(list.data, list.data + list.size, possible)) return -1;
    llama_sampler_apply(samplers.get(), &list);
    const bool chosen = plain || (list.selected >= 0 && possible(list.data[list.selected]));
    return chosen ? list.data[list.selected].id : -1;
  }

  // Few tokens are tried against a grammar, for most of the time the first one fits: only if it
  // does not, the whole vocabulary is.
  Token choose(std::span<const float> logits) {
    llama_token_data_array all = list(logits);
    Token token = sample(all);
    if (!grammar) return token;
    grammar->begin_token();
    if (token < 0 || !grammar->allows(token)) {
      all = list(logits);
      grammar->apply(all);
      token = sample(all);
    }
    if (token >= 0) grammar->accept(token);
    return token;
  }
};

Chooser::Chooser(const Sampling& sampling, const TimelineModel& model) {
  const bool random = sampling.temperature >= kColdest;
  const bool plain = is_plain(sampling);
  if (!random && plain) return;
  chain_ = std::make_shared<Chain>();
  chain_->samplers.reset(llama_sampler_chain_init(llama_sampler_chain_default_params()));
  const auto add = [&](llama_sampler* step) {
    llama_sampler_chain_add(chain_->samplers.get(), step);
  };
  chain_->plain = plain;
  const auto bias = biases(sampling, model);
  if (!bias.empty()) {
    add(llama_sampler_init_logit_bias(model.vocabulary(), std::int32_t(bias.size()), bias.data()));
  }
  if (has_penalties(sampling)) {
    chain_->counted = sampling.repeat_last_n;
    add(llama_sampler_init_penalties(
        model.vocabulary(), sampling.repeat_last_n, float(sampling.repeat_penalty),
        float(sampling.frequency_penalty), float(sampling.presence_penalty)));
  }
  if (!sampling.grammar.text.empty()) {
    chain_->grammar = std::make_unique<Constraint>(sampling.grammar, model);
  }
  if (!random) {
    add(llama_sampler_init_greedy());
    chain_->only_bans = sampling.typical_p >= 1 && !has_penalties(sampling) && !chain_->grammar;
    for (const llama_logit_bias& b : bias) {
      chain_->only_bans = chain_->only_bans && b.bias == -std::numeric_limits<float>::infinity();
      chain_->banned.push_back(b.token);
    }
    return;
  }
  if (sampling.top_k > 0) add(llama_sampler_init_top_k(sampling.top_k));
  if (sampling.typical_p < 1) add(llama_sampler_init_typical(float(sampling.typical_p), 1));
  add(llama_sampler_init_top_p(float(sampling.top_p), 1));
  add(llama_sampler_init_min_p(float(sampling.min_p), 1));
  add(llama_sampler_init_temp(float(sampling.temperature)));
  // To libllama this one number means a random seed.
  const bool mark = sampling.seed == LLAMA_DEFAULT_SEED;
  add(llama_sampler_init_dist(mark ? sampling.seed - 1 : sampling.seed));
}

void Chooser::read(std::span<const Token> tokens) {
  if (!chain_ || chain_->counted <= 0) return;
  const auto last = tokens.last(std::min(tokens.size(), std::size_t(chain_->counted)));
  for (const Token token : last) llama_sampler_accept(chain_->samplers.get(), token);
}

Chooser::Choice Chooser::choose(std::span<const float> logits, std::int64_t position) {
  const TopTwo top = top_two(logits);
  if (!top.valid) throw NanLogits(cat("NaN logits after position ", position));
  if (greedy()) return {Token(top.best), top.gap};
  const auto& banned = chain_->banned;
  if (chain_->only_bans && !has(banned, Token(top.best))) {
    // What the samplers would find after a look at the whole vocabulary.
    return {Token(top.best), top.gap};
  }
  const Token token = chain_->choose(logits);
  if (token < 0) {
    refuse(cat("no token is left to choose from after position ", position),
           "the grammar, logit_bias and ignore_eos exclude all of them: allow some");
  }
  llama_sampler_accept(chain_->samplers.get(), token);
  return {token, top.gap};
}

}  // namespace mrrope::engine
