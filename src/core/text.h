// SPDX-License-Identifier: Apache-2.0
// Text from values, for messages and tables.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>

namespace mrrope {

// The shortest decimal that reads back as the same double.
inline std::string number(double value) {
  if (std::isnan(value)) return "nan";
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : std::to_string(value);
}

// With this many digits after the point.
inline std::string fixed(double value, int digits) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

// With this many significant digits.
inline std::string significant(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
  return buffer;
}

inline void append(std::ostream& out, double value) { out << number(value); }
template <typename T>
void append(std::ostream& out, const T& value) {
  out << value;
}

// cat("scale ", 0.5, " is below 1")
template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (append(out, parts), ...);
  return out.str();
}

}  // namespace mrrope
