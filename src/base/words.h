// SPDX-License-Identifier: Apache-2.0
// Words that people type: lists of them, numbers, the known word that a misspelled one is closest
// to, and names of hosts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
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

// What `make`, a function or a member, gives for each element of a list.
template <typename List, typename Make>
auto mapped(const List& list, Make make) {
  std::vector<std::decay_t<std::invoke_result_t<Make&, decltype(*std::begin(list))>>> out;
  for (const auto& each : list) out.push_back(std::invoke(make, each));
  return out;
}

template <typename List, typename T>
bool has(const List& list, const T& value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

template <typename T, typename List>
void extend(std::vector<T>& list, const List& more) {
  list.insert(list.end(), std::begin(more), std::end(more));
}

// The first element whose member is this value, or of which `is` is true; null: there is none.
template <typename List, typename Member, typename T>
auto* find_by(List& list, Member member, const T& value) {
  const auto at = std::find_if(std::begin(list), std::end(list), [&](const auto& each) {
    return std::invoke(member, each) == value;
  });
  return at != std::end(list) ? &*at : nullptr;
}
template <typename List, typename Is>
auto* find_by(List& list, Is is) {
  return find_by(list, is, true);
}

// Every occurrence replaced, from the left; what takes its place is not searched again.
inline std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// Whether a list of words, separated by spaces, has this one.
inline bool has_word(std::string_view words, std::string_view word) {
  if (word.empty() || word.find(' ') != std::string_view::npos) return false;
  return (" " + std::string(words) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

// How many elements two sequences have in common at their beginning.
template <typename A, typename B>
std::size_t common_prefix(const A& a, const B& b) {
  return std::size_t(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

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

// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest distance; empty where all of them differ in more than a third of
// the letters. Upper and lower case count as equal.
std::string closest(std::string_view word, const std::vector<std::string>& candidates);

// "did you mean X? " or nothing: the beginning of a hint.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

std::string lower_case(std::string_view text);

// Whether a host certainly is this machine: "localhost", "::1", "[::1]", or four decimal numbers of
// 127.0.0.0/8. Nothing is resolved, and a name that merely begins like one ("127.evil.example") is
// not loopback. The host comes without a port.
bool is_loopback_host(std::string_view host);

// The host of "host:port", "[::1]:port" or either without a port.
std::string host_of_authority(std::string_view authority);

}  // namespace mrrope
