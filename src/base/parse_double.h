// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
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

}  // namespace mrrope
