// SPDX-License-Identifier: Apache-2.0
#include "base/net.h"

#include <arpa/inet.h>

#include "base/words.h"

namespace mrrope {

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
