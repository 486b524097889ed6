// SPDX-License-Identifier: Apache-2.0
// What a server is started with.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "engine/session/session.h"

namespace mrrope::serve {

struct ServerSettings {
  std::string host = "127.0.0.1";
  int port = 8080;                     // 0: any free port
  int parallel = 1;                    // conversations computed at the same time
  int queue = 64;                      // most requests that wait
  std::chrono::seconds timeout{3600};  // for one answer, including the time it waits
  std::int64_t context = 0;            // tokens of one conversation
  std::int64_t pool = 0;               // tokens of all together; 0: each has room of its own
  bool deterministic = false;          // answers do not depend on other requests
  std::string key;                     // empty: none is required
  std::string model_name;
  bool any_model = false;  // answers whatever model a request names
  std::string cors;        // origin of pages that may use the server; "*": all, empty: none
  std::string method;      // as the user named it
  std::filesystem::path slot_folder;  // for files of conversations; empty: none are written
  engine::SessionOwner slot_owner;    // what these belong to
  // Gets a line about each prompt that takes long to read. Nothing of a request's content is in it.
  std::function<void(const std::string&)> log;
};

}  // namespace mrrope::serve
