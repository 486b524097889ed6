// SPDX-License-Identifier: Apache-2.0
#include "eval/token_counter.h"

namespace mrrope {

namespace {

constexpr std::size_t kMostWords = 1 << 20;

bool blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace

std::int64_t TokenCounter::count(std::string_view text) {
  std::int64_t total = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    // Blanks belong to the word after them.
    std::size_t end = at;
    while (end < text.size() && blank(text[end])) ++end;
    while (end < text.size() && !blank(text[end])) ++end;
    key_.assign(text.substr(at, end - at));
    at = end;
    const auto known = known_.find(key_);
    if (known != known_.end()) {
      total += known->second;
      continue;
    }
    const auto tokens = std::int32_t(model_.tokenize(key_, false, false).size());
    if (known_.size() < kMostWords) known_.emplace(key_, tokens);
    total += tokens;
  }
  return total;
}

}  // namespace mrrope
