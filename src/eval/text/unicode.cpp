// SPDX-License-Identifier: Apache-2.0
#include "eval/text/unicode.h"

#include <algorithm>

#include "base/utf8.h"

namespace mrrope::eval {

std::u32string to_characters(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    out.push_back(c.size > 0 ? c.code : 0xfffd);
    text.remove_prefix(c.size > 0 ? c.size : 1);
  }
  return out;
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) append_character(out, c);
  return out;
}

bool is_blank(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

bool is_letter(char32_t c) {
  if (c < 0x80) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  if (c < 0xc0)
    return c == 0xaa || c == 0xb2 || c == 0xb3 || c == 0xb5 || c == 0xb9 || c == 0xba ||
           (c >= 0xbc && c <= 0xbe);
  const bool sign = c == 0xd7 || c == 0xf7 || (c >= 0x2000 && c <= 0x206f) ||
                    (c >= 0x20a0 && c <= 0x20cf) || (c >= 0x2190 && c <= 0x245f) ||
                    (c >= 0x2500 && c <= 0x2bff) || (c >= 0x2e00 && c <= 0x2e7f) ||
                    (c >= 0x3000 && c <= 0x3004) || (c >= 0x3008 && c <= 0x3020) ||
                    (c >= 0xfe10 && c <= 0xfe6f) || (c >= 0xff01 && c <= 0xff0f) ||
                    (c >= 0xff1a && c <= 0xff20) || (c >= 0xff3b && c <= 0xff40 && c != 0xff3f) ||
                    (c >= 0xff5b && c <= 0xff65) || c == 0xfffd || (c >= 0x1f000 && c <= 0x1faff);
  return !sign;
}

char32_t to_lower(char32_t c) {
  if (c >= 'A' && c <= 'Z') return c + 32;
  if (c >= 0xc0 && c <= 0xde && c != 0xd7) return c + 32;
  const bool even_pairs = (c >= 0x100 && c <= 0x137 && c != 0x130) || (c >= 0x14a && c <= 0x177) ||
                          (c >= 0x1e00 && c <= 0x1e95) || (c >= 0x460 && c <= 0x481);
  if (even_pairs) return c | 1;
  const bool odd_pairs = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e);
  if (odd_pairs) return c + (c & 1);
  if ((c >= 0x391 && c <= 0x3a9 && c != 0x3a2) || (c >= 0x410 && c <= 0x42f)) return c + 32;
  if (c >= 0x400 && c <= 0x40f) return c + 80;
  return c;
}

std::u32string lower(std::u32string text) {
  std::transform(text.begin(), text.end(), text.begin(), to_lower);
  return text;
}

std::u32string upper(std::u32string text) {
  for (char32_t& c : text) {
    if (c >= 'a' && c <= 'z') {
      c -= 32;
    } else if (c >= 0x80) {
      // The upper case of a letter is the character whose lower case it is.
      for (const char32_t capital : {c - 32, c - 1, c - 80}) {
        if (capital != c && to_lower(capital) == c) {
          c = capital;
          break;
        }
      }
    }
  }
  return text;
}

std::u32string_view stripped(std::u32string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::u32string> split_blanks(std::u32string_view text) {
  std::vector<std::u32string> words;
  bool inside = false;
  for (const char32_t c : text) {
    if (is_blank(c)) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    words.back().push_back(c);
    inside = true;
  }
  return words;
}

std::u32string blanked(std::u32string text, const std::vector<std::u32string_view>& parts) {
  for (const std::u32string_view part : parts) {
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) {
      text.replace(at, part.size(), 1, U' ');
    }
  }
  return text;
}

}  // namespace mrrope::eval
