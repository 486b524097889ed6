// SPDX-License-Identifier: Apache-2.0
// Room for libllama's regular expressions: std::regex recurses once per character of a match, so a
// long run of one character overflows an ordinary stack.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace mrrope::engine {

// An upper bound, in characters, on what one match of any pre-tokenizer expression of libllama can
// cover in this text. No expression matches across the end of a line that is followed by a word, or
// across a punctuation mark, a space and a word.
std::size_t longest_match(std::string_view text);

// Calls `work` with a stack on which a match of this many characters fits: on the caller's where
// that suffices, else on another thread, one at a time. Passes on what `work` throws. Throws Error:
// usage (no stack could hold it), out_of_memory.
void run_with_room_for_match(std::size_t characters, const std::function<void()>& work);

}  // namespace mrrope::engine
