// SPDX-License-Identifier: Apache-2.0
// Devices of other machines, through llama.cpp's RPC backend. The user starts its servers.
#pragma once

#include <string>

namespace mrrope::engine {

// "host:port,host:port". The devices are added to those of this process, permanently. The backend
// ends the process if a server does not answer, so each is contacted first. Throws Error: usage
// (not host:port), failed (no connection, or not an RPC server), unsupported (another version).
void add_rpc_servers(const std::string& list);

}  // namespace mrrope::engine
