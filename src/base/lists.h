// SPDX-License-Identifier: Apache-2.0
// Comma-separated lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mrrope {

inline std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

// Split at commas outside of brackets and parentheses; blanks around the parts are dropped. An
// empty text is one empty part.
inline std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> out;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (i < text.size() && (c != ',' || depth > 0)) continue;
    out.push_back(trimmed(text.substr(start, i - start)));
    start = i + 1;
  }
  return out;
}

inline std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) out += between;
    out += part;
  }
  return out;
}

}  // namespace mrrope
