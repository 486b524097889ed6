// SPDX-License-Identifier: Apache-2.0
// Numbers from texts.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

namespace mrrope {

// The finite number that is all of a text. (libc++ before 20 has no std::from_chars() for doubles.)
inline std::optional<double> parse_double(const std::string& text) {
  if (text.find_first_not_of("+-.0123456789eE") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool all = !text.empty() && end == text.c_str() + text.size();
  return all && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Tokens: "4096", "128k" (131072), "1m" (1048576). From 1 to 2^40.
inline std::optional<std::int64_t> parse_length(std::string text) {
  double unit = 1;
  if (!text.empty()) {
    if (text.back() == 'k' || text.back() == 'K') unit = 1 << 10;
    if (text.back() == 'm' || text.back() == 'M') unit = 1 << 20;
    if (unit > 1) text.pop_back();
  }
  if (text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  const double value = parse_double(text).value_or(0) * unit;
  return value >= 1 && value <= 0x1p40 ? std::optional(std::int64_t(value)) : std::nullopt;
}

}  // namespace mrrope
