// SPDX-License-Identifier: Apache-2.0
// Who may use the server.
#pragma once

#include <httplib.h>

#include <optional>
#include <string>

#include "serve/api/error.h"

namespace mrrope::serve {

struct AccessRules {
  bool loopback = true;   // the server listens on this machine only
  std::string key;        // empty: none is required
  std::string cors = {};  // origin of pages that may use it; "*": all, empty: only its own
};

// Why a request is refused; nullopt if it is allowed. A page of another site must not reach a
// server on this machine, neither directly (Origin) nor under a name that it has made to point here
// (Host).
std::optional<ApiError> denied(const AccessRules& rules, const httplib::Request& request);

// For pages of the origin that the rules allow: a browser asks before it sends a request
// (preflight), and shows the answer only if that names the origin.
bool is_preflight(const AccessRules& rules, const httplib::Request& request);
void allow_origin(const AccessRules& rules, const httplib::Request& request,
                  httplib::Response& response);

}  // namespace mrrope::serve
