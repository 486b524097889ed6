// SPDX-License-Identifier: Apache-2.0
// The parts of Unicode that scorers need: characters, blanks, lower case. Each byte that is not
// UTF-8 counts as U+FFFD.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mrrope::eval {

std::u32string to_characters(std::string_view text);
std::string to_utf8(std::u32string_view text);

bool is_blank(char32_t c);      // what Python's str.split() splits at
bool is_letter(char32_t c);     // of a word: a letter, a digit or an underscore
char32_t to_lower(char32_t c);  // Latin, Greek and Cyrillic

std::u32string lower(std::u32string text);
std::u32string upper(std::u32string text);
std::u32string_view stripped(std::u32string_view text);
std::vector<std::u32string> split_blanks(std::u32string_view text);

// Every one of these texts replaced by a blank, in this order.
std::u32string blanked(std::u32string text, const std::vector<std::u32string_view>& parts);

}  // namespace mrrope::eval
