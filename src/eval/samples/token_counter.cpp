// SPDX-License-Identifier: Apache-2.0
#include "eval/samples/token_counter.h"

namespace mrrope::eval {

namespace {

constexpr std::size_t kMaxWords = 1 << 20;

bool blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Calls take(word) for each: a word begins with a single blank between two letters or signs. Line
// ends stay inside, since some vocabularies join them with what comes before.
template <typename Take>
void each_word(std::string_view text, const Take& take) {
  std::size_t begin = 0;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != ' ' || blank(text[i - 1]) || blank(text[i + 1])) continue;
    take(text.substr(begin, i - begin));
    begin = i;
  }
  if (begin < text.size()) take(text.substr(begin));
}

}  // namespace

const std::vector<Token>& TokenCounter::word(std::string_view text) {
  key_.assign(text);
  const auto known = known_.find(key_);
  if (known != known_.end()) return known->second;
  std::vector<Token> tokens = model_.tokenize(key_, false, special_);
  if (known_.size() < kMaxWords) return known_.emplace(key_, std::move(tokens)).first->second;
  unknown_ = std::move(tokens);
  return unknown_;
}

std::int64_t TokenCounter::count(std::string_view text) {
  if (model_.tokenizer_is_remote()) return std::int64_t(tokens(text).size());
  std::int64_t total = 0;
  each_word(text, [&](std::string_view part) { total += std::int64_t(word(part).size()); });
  return total;
}

std::vector<Token> TokenCounter::tokens(std::string_view text) {
  if (model_.tokenizer_is_remote()) return model_.tokenize(text, false, special_);
  std::vector<Token> all;
  all.reserve(text.size() / 3);
  each_word(text, [&](std::string_view part) {
    const std::vector<Token>& tokens = word(part);
    all.insert(all.end(), tokens.begin(), tokens.end());
  });
  return all;
}

}  // namespace mrrope::eval
