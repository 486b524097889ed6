// SPDX-License-Identifier: Apache-2.0
// Tokens of made texts, quickly. Such texts hold the same words again and again: each is tokenized
// once, with the blank before it, and remembered (whole where the tokenizer is far away). Where a
// vocabulary's tokens never reach over the start of a word, as in nearly all of them, the outcome
// is the tokenization of the whole text; the caller checks (fitting.h does, for every set of
// samples).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/tokenizer.h"

namespace mrrope {

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

}  // namespace mrrope
