// SPDX-License-Identifier: Apache-2.0
// Counts the tokens of generated texts quickly. Such texts repeat their words: each is tokenized
// once, with the blank before it, and remembered (whole texts if the tokenizer is remote). If no
// token of the vocabulary crosses the start of a word, which is true for nearly all, the result is
// the tokenization of the whole text; the caller checks this (fitting.h does for every sample set).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/tokenizer.h"

namespace mrrope::eval {

class TokenCounter {
 public:
  // special: the text of control tokens is read as those tokens.
  explicit TokenCounter(const Tokenizer& model, bool special = false)
      : model_(model), special_(special) {}

  std::int64_t count(std::string_view text);
  // Without BOS.
  std::vector<Token> tokens(std::string_view text);

 private:
  const std::vector<Token>& word(std::string_view text);

  const Tokenizer& model_;
  bool special_;
  std::unordered_map<std::string, std::vector<Token>> known_;
  std::string key_;
  std::vector<Token> unknown_;
};

}  // namespace mrrope::eval
