// SPDX-License-Identifier: Apache-2.0
// A growing context in words and characters, for people.
#pragma once

#include <cstdint>
#include <string>

#include "mrrope/ladder.h"

namespace mrrope {

// "32K" for 32768 tokens.
std::string tokens_text(std::int64_t tokens);

// "unmodified to 8K, then compressed 2.1x": for titles.
std::string ladder_summary(const Ladder& ladder);

// "Unmodified up to 32K. Beyond, distant text is compressed 4x."
std::string ladder_sentence(const Ladder& ladder);

// A bar of this many columns for a text of `length` tokens, with a line that explains it:
//   [=========#####...............] 6144 of 32768 tokens
//   = 4096 compressed 2.1x, # 2048 exact
std::string context_bar(const Ladder& ladder, std::int64_t length, std::size_t columns);

}  // namespace mrrope
