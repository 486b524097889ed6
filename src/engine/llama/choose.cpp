// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/choose.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "base/text.h"
#include "engine/llama/graph/score.h"
#include "engine/llama/llama_api.h"
#include "model/timeline_model.h"
#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

using Clock = std::chrono::steady_clock;

// For one token. An ambiguous grammar takes longer with every character, and everyone waits.
constexpr std::chrono::seconds kGrammarLimit{2};

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

LlamaPtr<llama_sampler> grammar_sampler(const Grammar& grammar, const TimelineModel& model) {
  const llama_vocab* vocab = model.llama_vocabulary();
  if (vocab == nullptr) {
    throw Error(ErrorKind::unsupported, "this engine cannot constrain an answer to a grammar",
                "leave the grammar out");
  }
  LlamaPtr<llama_sampler> sampler;
  if (grammar.lazy) {
    std::vector<const char*> patterns;
    for (const std::string& pattern : grammar.patterns) patterns.push_back(pattern.c_str());
    sampler.reset(llama_sampler_init_grammar_lazy_patterns(
        vocab, grammar.text.c_str(), "root", patterns.data(), patterns.size(),
        grammar.tokens.data(), grammar.tokens.size()));
  } else {
    sampler.reset(llama_sampler_init_grammar(vocab, grammar.text.c_str(), "root"));
  }
  if (!sampler) {
    throw Error(ErrorKind::usage, "the grammar cannot be read: " + take_llama_log(),
                "write it in GBNF, with a rule named root");
  }
  if (!grammar.lazy) {
    for (const Token token : grammar.begun) {
      // libllama would abort.
      if (model.ends_text(token)) {
        throw Error(ErrorKind::failed, "the prompt ends with the end of a text",
                    "this chat template cannot be used with a grammar");
      }
      llama_sampler_accept(sampler.get(), token);
    }
  }
  return sampler;
}

bool is_possible(const llama_token_data_array& list) {
  return std::any_of(list.data, list.data + list.size,
                     [](const llama_token_data& c) { return std::isfinite(c.logit); });
}

}  // namespace

struct Chooser::Chain {
  LlamaPtr<llama_sampler> samplers;
  LlamaPtr<llama_sampler> grammar;  // may be null
  int counted = 0;                  // of the last tokens, by penalties
  bool plain = true;                // nothing can leave it without a token to choose
  // Greedy, and all that differs from the logits is that these cannot be chosen.
  bool only_bans = false;
  std::vector<Token> banned;
  std::vector<llama_token_data> candidates;

  llama_token_data_array list(std::span<const float> logits) {
    candidates.resize(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      candidates[i] = {static_cast<llama_token>(i), logits[i], 0};
    }
    return {candidates.data(), candidates.size(), -1, false};
  }

  bool fits(Token token) {
    llama_token_data one{token, 1, 0};
    llama_token_data_array list{&one, 1, -1, false};
    llama_sampler_apply(grammar.get(), &list);
    return std::isfinite(one.logit);
  }

  // The token that the samplers choose; -1 where none is left.
  Token sample(llama_token_data_array& list) {
    if (!plain && !is_possible(list)) return -1;
    llama_sampler_apply(samplers.get(), &list);
    if (plain) return list.data[list.selected].id;
    if (list.selected < 0 || !std::isfinite(list.data[list.selected].logit)) return -1;
    return list.data[list.selected].id;
  }

  // Few tokens are tried against a grammar, for most of the time the first one fits: only if it
  // does not, the whole vocabulary is.
  Token constrained(std::span<const float> logits) {
    const auto start = Clock::now();
    llama_token_data_array all = list(logits);
    Token token = sample(all);
    if (token < 0 || !fits(token)) {
      all = list(logits);
      llama_sampler_apply(grammar.get(), &all);
      token = sample(all);
    }
    if (token >= 0) llama_sampler_accept(grammar.get(), token);
    if (Clock::now() - start > kGrammarLimit) {
      throw Error(ErrorKind::failed,
                  cat("the grammar took more than ", kGrammarLimit.count(), " s for one token"),
                  "make it less ambiguous: no two alternatives should begin alike");
    }
    return token;
  }
};

Chooser::Chooser(const Sampling& sampling, const TimelineModel& model) {
  const bool random = sampling.temperature >= kColdest;
  const bool plain = is_plain(sampling);
  if (!random && plain) return;
  chain_ = std::make_unique<Chain>();
  chain_->samplers.reset(llama_sampler_chain_init(llama_sampler_chain_default_params()));
  const auto add = [&](llama_sampler* step) {
    llama_sampler_chain_add(chain_->samplers.get(), step);
  };
  chain_->plain = plain;
  if (!plain) {
    const auto bias = biases(sampling, model);
    if (!bias.empty()) {
      add(llama_sampler_init_logit_bias(model.vocabulary(), static_cast<std::int32_t>(bias.size()),
                                        bias.data()));
    }
    if (has_penalties(sampling)) {
      chain_->counted = sampling.repeat_last_n;
      add(llama_sampler_init_penalties(model.vocabulary(), sampling.repeat_last_n,
                                       static_cast<float>(sampling.repeat_penalty),
                                       static_cast<float>(sampling.frequency_penalty),
                                       static_cast<float>(sampling.presence_penalty)));
    }
    if (!sampling.grammar.text.empty()) chain_->grammar = grammar_sampler(sampling.grammar, model);
  }
  if (!random) {
    add(llama_sampler_init_greedy());
    chain_->only_bans = sampling.typical_p >= 1 && !has_penalties(sampling) && !chain_->grammar;
    for (const llama_logit_bias& b : biases(sampling, model)) {
      chain_->only_bans = chain_->only_bans && b.bias == -std::numeric_limits<float>::infinity();
      chain_->banned.push_back(b.token);
    }
    return;
  }
  if (sampling.top_k > 0) add(llama_sampler_init_top_k(sampling.top_k));
  if (sampling.typical_p < 1) {
    add(llama_sampler_init_typical(static_cast<float>(sampling.typical_p), 1));
  }
  add(llama_sampler_init_top_p(static_cast<float>(sampling.top_p), 1));
  add(llama_sampler_init_min_p(static_cast<float>(sampling.min_p), 1));
  add(llama_sampler_init_temp(static_cast<float>(sampling.temperature)));
  // To libllama this one number means a random seed.
  const bool mark = sampling.seed == LLAMA_DEFAULT_SEED;
  add(llama_sampler_init_dist(mark ? sampling.seed - 1 : sampling.seed));
}

Chooser::~Chooser() = default;
Chooser::Chooser(Chooser&&) noexcept = default;
Chooser& Chooser::operator=(Chooser&&) noexcept = default;

void Chooser::read(std::span<const Token> tokens) {
  if (!chain_ || chain_->counted <= 0) return;
  const auto last = tokens.last(std::min(tokens.size(), static_cast<std::size_t>(chain_->counted)));
  for (const Token token : last) llama_sampler_accept(chain_->samplers.get(), token);
}

Chooser::Choice Chooser::choose(std::span<const float> logits, std::int64_t position) {
  const TopTwo top = top_two(logits);
  if (!top.valid) throw NanLogits(cat("NaN logits after position ", position));
  if (greedy()) return {static_cast<Token>(top.best), top.gap};
  Token token = -1;
  const auto& banned = chain_->banned;
  if (chain_->only_bans &&
      std::find(banned.begin(), banned.end(), static_cast<Token>(top.best)) == banned.end()) {
    // What the samplers would find after a look at the whole vocabulary.
    return {static_cast<Token>(top.best), top.gap};
  }
  if (chain_->grammar) {
    token = chain_->constrained(logits);
  } else {
    llama_token_data_array list = chain_->list(logits);
    token = chain_->sample(list);
  }
  if (token < 0) {
    throw Error(ErrorKind::failed, cat("no token is left to choose from after position ", position),
                "the grammar and logit_bias exclude all of them: allow some");
  }
  llama_sampler_accept(chain_->samplers.get(), token);
  return {token, top.gap};
}

}  // namespace mrrope::engine
