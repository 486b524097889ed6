// SPDX-License-Identifier: Apache-2.0
#include "base/net.h"

#include <algorithm>
#include <array>
#include <optional>

namespace mrrope {

namespace {

// Four decimal numbers up to 255 without leading zeros: other spellings mean different addresses to
// different readers.
std::optional<std::array<int, 4>> dotted_quad(std::string_view text) {
  std::array<int, 4> quad{};
  for (std::size_t i = 0; i < quad.size(); ++i) {
    const std::size_t dot = text.find('.');
    if ((dot == std::string_view::npos) != (i + 1 == quad.size())) return std::nullopt;
    const std::string_view part = text.substr(0, dot);
    if (part.empty() || part.size() > 3 || (part.size() > 1 && part.front() == '0')) {
      return std::nullopt;
    }
    for (const char c : part) {
      if (c < '0' || c > '9') return std::nullopt;
      quad[i] = 10 * quad[i] + (c - '0');
    }
    if (quad[i] > 255) return std::nullopt;
    text.remove_prefix(dot == std::string_view::npos ? text.size() : dot + 1);
  }
  return quad;
}

}  // namespace

bool is_loopback_host(std::string_view host) {
  constexpr std::string_view kName = "localhost";
  const bool named =
      std::equal(host.begin(), host.end(), kName.begin(), kName.end(),
                 [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
  if (named || host == "::1" || host == "[::1]") return true;
  const auto quad = dotted_quad(host);
  return quad && quad->front() == 127;
}

std::string host_of_authority(std::string_view authority) {
  if (!authority.empty() && authority.front() == '[') {
    const std::size_t end = authority.find(']');
    return std::string(authority.substr(0, end == std::string_view::npos ? end : end + 1));
  }
  return std::string(authority.substr(0, authority.find(':')));
}

}  // namespace mrrope
