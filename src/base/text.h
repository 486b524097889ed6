// SPDX-License-Identifier: Apache-2.0
// Text from values, for messages and tables; with it come the words that people type (words.h) and
// Error.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "base/words.h"
#include "mrrope/error.h"

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

// 131072 tokens as "128k", as one would type it; 5000 as "5000".
inline std::string length_text(std::int64_t tokens) {
  if (tokens > 0 && tokens % (1 << 20) == 0) return std::to_string(tokens >> 20) + "m";
  if (tokens > 0 && tokens % (1 << 10) == 0) return std::to_string(tokens >> 10) + "k";
  return std::to_string(tokens);
}

// 1536 bytes as "1.5 KiB".
inline std::string bytes_text(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 5) bytes /= 1024, ++unit;
  return fixed(bytes, unit == 0 ? 0 : 1) + " " + units[unit];
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

// 42 s, 3 min 05 s, 2 h 07 min.
inline std::string duration_text(double seconds) {
  constexpr double kYear = 365.25 * 24 * 3600;
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds >= 1000 * kYear) return "over 1000 years";
  if (seconds >= kYear) return cat(significant(seconds / kYear, 2), " years");
  const auto two = [](std::int64_t value) { return cat(value < 10 ? "0" : "", value); };
  const auto s = std::int64_t(std::ceil(seconds));
  if (s < 60) return cat(s, " s");
  if (s < 3600) return cat(s / 60, " min ", two(s % 60), " s");
  return cat(s / 3600, " h ", two(s / 60 % 60), " min");
}

std::string time_text(std::int64_t seconds);  // since 1970: "2026-01-31T12:00:00Z"

// Throws Error (usage): the request is not valid.
[[noreturn]] inline void refuse(const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorKind::usage, message, hint);
}
inline void refuse_if(bool wrong, const std::string& message, const std::string& hint = {}) {
  if (wrong) refuse(message, hint);
}
// The same of another kind. The message is made either way: not for what happens often.
inline void throw_if(bool wrong, ErrorKind kind, const std::string& message,
                     const std::string& hint = {}) {
  if (wrong) throw Error(kind, message, hint);
}

// A word for a shell, quoted if necessary.
inline std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                          "0123456789_-+=:,./@%") == std::string::npos;
  if (plain) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// Tables as text: for a terminal, and as comma-separated values.
using TextRow = std::vector<std::string>;

// Columns as wide as their widest cell, two blanks between, no blanks at the end of a line. The
// columns listed in `left` are aligned to the left, the others to the right.
std::string aligned(const std::vector<TextRow>& rows, const std::vector<std::size_t>& left = {0});

// RFC 4180, with plain line feeds: one line with its line feed. Cells with a comma, a quote or a
// line break are quoted.
std::string csv_line(const std::vector<std::string>& cells);

}  // namespace mrrope
