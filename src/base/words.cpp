// SPDX-License-Identifier: Apache-2.0
#include "base/words.h"

#include <arpa/inet.h>

namespace mrrope {

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: row i holds the distances of a's first i letters.
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = last;
    last = row;
  }
  return last.back();
}

std::string closest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 64;  // nothing is spelled like a longer one
  if (word.empty() || word.size() > kLongest) return {};
  const std::string wanted = lower_case(word);
  std::size_t best = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, lower_case(candidate));
    if (distance < best) best = distance, found = candidate;
  }
  return found;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string found = closest(word, candidates);
  return found.empty() ? "" : "did you mean " + found + "? ";
}

bool is_loopback_host(std::string_view host) {
  const std::string name = lower_case(host);
  if (name == "localhost" || name == "::1" || name == "[::1]") return true;
  // Four decimal numbers without leading zeros: other spellings mean different addresses to
  // different readers.
  in_addr address{};
  return name.find('\0') == std::string::npos &&
         ::inet_pton(AF_INET, name.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

std::string host_of_authority(std::string_view authority) {
  if (!authority.empty() && authority.front() == '[') {
    const std::size_t end = authority.find(']');
    return std::string(authority.substr(0, end == std::string_view::npos ? end : end + 1));
  }
  return std::string(authority.substr(0, authority.find(':')));
}

}  // namespace mrrope
