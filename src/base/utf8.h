// SPDX-License-Identifier: Apache-2.0
// UTF-8, strictly (RFC 3629): overlong forms, surrogates and codes above U+10FFFF are not
// characters. And bytes that come in pieces, passed on as whole characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

// How many bytes at the front of text are whole characters. Bytes that no further byte can turn
// into a character count as whole: a stream must not wait for them.
std::size_t whole_characters(std::string_view text) noexcept;

// Passes pieces on up to the first stop string.
class TextStream {
 public:
  // Empty stop strings are ignored.
  explicit TextStream(std::vector<std::string> stop);

  // Takes a piece and returns what can be passed on: nothing that may still become part of a stop
  // string or of a character.
  std::string add(std::string_view piece);

  // Whether a stop string was found; it and what follows are dropped.
  bool stopped() const noexcept { return stopped_; }
  // The one that was found first.
  const std::string& stop_string() const noexcept { return found_; }

  // What was held back, once no more pieces come.
  std::string finish();

 private:
  std::vector<std::string> stop_;
  std::string held_;
  bool stopped_ = false;
  std::string found_;
};

}  // namespace mrrope
