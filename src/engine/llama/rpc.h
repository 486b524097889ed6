// SPDX-License-Identifier: Apache-2.0
// Devices of other machines, through llama.cpp's RPC backend. Its servers are the user's to start.
#pragma once

#include <string>

namespace mrrope {

// "host:port,host:port". The devices join those of this process, for good. The backend ends the
// process where a server does not answer, so each is spoken to first. Throws Error: usage (no
// host:port), failed (nobody there, or no RPC server), unsupported (of another version).
void add_rpc_servers(const std::string& list);

}  // namespace mrrope
