// SPDX-License-Identifier: Apache-2.0
#include "serve/http/access.h"

#include <algorithm>
#include <array>

#include "base/net.h"
#include "base/text.h"

namespace mrrope::serve {

namespace {

// Constant-time comparison.
bool same_secret(const std::string& given, const std::string& secret) {
  unsigned char differs = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const char c = i < given.size() ? given[i] : '\0';
    differs = static_cast<unsigned char>(differs | (c ^ secret[i]));
  }
  return differs == 0;
}

bool needs_no_key(const std::string& path) {
  static constexpr std::array kOpen = {"/",         "/page.css", "/page.js",
                                       "/chart.js", "/health",   "/v1/health"};
  return std::find(kOpen.begin(), kOpen.end(), path) != kOpen.end();
}

bool asks_before(const httplib::Request& request) {
  static const std::string kAsks = "OPTIONS";
  return kAsks == request.method;
}

bool is_allowed_origin(const AccessRules& rules, const httplib::Request& request) {
  const std::string origin = request.get_header_value("Origin");
  return !origin.empty() && (rules.cors == "*" || rules.cors == origin);
}

}  // namespace

bool is_preflight(const AccessRules& rules, const httplib::Request& request) {
  return asks_before(request) && is_allowed_origin(rules, request);
}

void allow_origin(const AccessRules& rules, const httplib::Request& request,
                  httplib::Response& response) {
  if (!is_allowed_origin(rules, request)) return;
  response.set_header("Access-Control-Allow-Origin", rules.cors);
  response.set_header("Vary", "Origin, Access-Control-Request-Headers");
  if (!asks_before(request)) return;
  response.set_header("Access-Control-Allow-Methods", "GET, POST");
  // Clients add headers of their own, and "*" would leave out Authorization.
  const std::string wanted = request.get_header_value("Access-Control-Request-Headers");
  response.set_header("Access-Control-Allow-Headers",
                      wanted.empty() ? "Authorization, Content-Type" : wanted);
  response.set_header("Access-Control-Max-Age", "600");
}

std::optional<ApiError> denied(const AccessRules& rules, const httplib::Request& request) {
  // Two readers could take different ones: a proxy the first, this server the second.
  for (const char* name : {"Host", "Origin", "Authorization", "X-Api-Key"}) {
    if (request.get_header_value_count(name) > 1) {
      return ApiError(400, cat("the request has more than one ", name, " header"), {},
                      "repeated_header");
    }
  }
  const std::string host = request.get_header_value("Host");
  if (rules.loopback && !host.empty() && !is_loopback_host(host_of_authority(host))) {
    return ApiError(403, "this server only accepts requests to localhost", {}, "wrong_host");
  }
  const std::string origin = request.get_header_value("Origin");
  const bool own =
      origin.empty() || origin == cat("http://", host) || origin == cat("https://", host);
  if (!own && !is_allowed_origin(rules, request)) {
    return ApiError(403, "cross-origin requests are blocked: start the server with --cors ORIGIN",
                    {}, "wrong_origin");
  }
  if (is_preflight(rules, request)) return std::nullopt;  // it has no key yet
  if (rules.key.empty() || needs_no_key(request.path)) return std::nullopt;
  const std::string given = request.get_header_value("Authorization");
  if (given.rfind("Bearer ", 0) == 0 && same_secret(given.substr(7), rules.key)) {
    return std::nullopt;
  }
  if (same_secret(request.get_header_value("X-Api-Key"), rules.key)) return std::nullopt;
  return ApiError(401, "this server requires its API key: Authorization: Bearer KEY", {},
                  "invalid_api_key");
}

}  // namespace mrrope::serve
