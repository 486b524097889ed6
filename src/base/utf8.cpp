// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <algorithm>

namespace mrrope {

namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Length of the longest end of text that is the beginning of a stop string.
std::size_t possible_stop(std::string_view text, const std::vector<std::string>& stop) {
  std::size_t longest = 0;
  for (const std::string& s : stop) {
    for (std::size_t n = std::min(s.size() - 1, text.size()); n > longest; --n) {
      if (text.substr(text.size() - n) == std::string_view(s).substr(0, n)) {
        longest = n;
        break;
      }
    }
  }
  return longest;
}

}  // namespace

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

std::size_t whole_characters(std::string_view text) noexcept {
  // Only the last character can be unfinished, and it has at most three bytes so far.
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const char c = text[text.size() - back];
    if (continues(c)) continue;
    return character_size(c) > back ? text.size() - back : text.size();
  }
  return text.size();
}

TextStream::TextStream(std::vector<std::string> stop) : stop_(std::move(stop)) {
  stop_.erase(std::remove(stop_.begin(), stop_.end(), std::string()), stop_.end());
}

std::string TextStream::add(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  std::size_t first = std::string::npos;
  for (const std::string& s : stop_) {
    const std::size_t at = held_.find(s);
    if (at < first) found_ = s;
    first = std::min(first, at);
  }
  if (first != std::string::npos) {
    stopped_ = true;
    std::string text = held_.substr(0, first);
    held_.clear();
    return text;
  }
  const std::size_t ready =
      std::min(whole_characters(held_), held_.size() - possible_stop(held_, stop_));
  // A stop string may begin inside a character's bytes: cut at a character again.
  const std::size_t cut = whole_characters(std::string_view(held_).substr(0, ready));
  std::string text = held_.substr(0, cut);
  held_.erase(0, cut);
  return text;
}

std::string TextStream::finish() {
  std::string text;
  text.swap(held_);
  return text;
}

}  // namespace mrrope
