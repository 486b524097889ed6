// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

namespace mrrope {

std::size_t character_size(char first) noexcept {
  const auto lead = static_cast<unsigned char>(first);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

Utf8Character first_character(std::string_view text) noexcept {
  if (text.empty()) return {};
  const std::size_t size = character_size(text[0]);
  if (size == 0 || size > text.size()) return {};
  const auto lead = static_cast<unsigned char>(text[0]);
  if (size == 1) return {lead, 1};
  char32_t code = lead & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80U) return {};
    code = code << 6 | (next & 0x3fU);
  }
  const char32_t least = size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000;
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, size};
}

void append_character(std::string& text, char32_t code) {
  if (code < 0x80) {
    text.push_back(char(code));
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  text.push_back(char(((0xff00U >> (more + 1)) & 0xffU) | (code >> (6 * more))));
  for (int k = more; k-- > 0;) {
    text.push_back(char(0x80U | ((code >> (6 * k)) & 0x3fU)));
  }
}

}  // namespace mrrope
