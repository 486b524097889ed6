// SPDX-License-Identifier: Apache-2.0
// Names of hosts, as they appear in addresses and Host headers.
#pragma once

#include <string>
#include <string_view>

namespace mrrope {

// Whether a host certainly is this machine: "localhost", "::1", "[::1]", or four decimal numbers of
// 127.0.0.0/8. Nothing is resolved, and a name that merely begins like one ("127.evil.example") is
// not loopback. The host comes without a port.
bool is_loopback_host(std::string_view host);

// The host of "host:port", "[::1]:port" or either without a port.
std::string host_of_authority(std::string_view authority);

}  // namespace mrrope
