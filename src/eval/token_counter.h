// SPDX-License-Identifier: Apache-2.0
// How many tokens a text takes, quickly: words are counted one by one and remembered, since texts
// that are fitted to a length hold the same words again and again. Tokens never reach over a blank
// in most vocabularies, so the sum is close; a caller that needs the number tokenizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/engine.h"

namespace mrrope {

class TokenCounter {
 public:
  explicit TokenCounter(const LanguageModel& model) : model_(model) {}

  std::int64_t count(std::string_view text);

 private:
  const LanguageModel& model_;
  std::unordered_map<std::string, std::int32_t> known_;
  std::string key_;
};

}  // namespace mrrope
