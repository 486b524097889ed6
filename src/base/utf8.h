// SPDX-License-Identifier: Apache-2.0
// UTF-8, strictly (RFC 3629): overlong forms, surrogates and codes above U+10FFFF are not
// characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mrrope {

struct Utf8Character {
  char32_t code = 0;
  std::size_t size = 0;  // bytes; 0: the text does not begin with a character
};

// The first character of a text.
Utf8Character first_character(std::string_view text) noexcept;

// Bytes of a character that begins with this one; 0: none does.
std::size_t character_size(char first) noexcept;

void append_character(std::string& text, char32_t code);

}  // namespace mrrope
