// SPDX-License-Identifier: Apache-2.0
#include "serve/http/access.h"

#include <algorithm>
#include <array>

#include "base/net.h"
#include "base/text.h"

namespace mrrope::serve {

namespace {

constexpr const char* kAsksBefore = "OPTIONS";  // of a browser, see is_preflight()

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
  static constexpr std::array kOpen = {"/", "/page.css", "/page.js", "/health", "/v1/health"};
  return std::find(kOpen.begin(), kOpen.end(), path) != kOpen.end();
}

bool is_allowed_origin(const AccessRules& rules, const httplib::Request& request) {
  const std::string origin = request.get_header_value("Origin");
  return !origin.empty() && (rules.cors == "*" || rules.cors == origin);
}

}  // namespace

bool is_preflight(const AccessRules& rules, const httplib::Request& request) {
  return request.method == kAsksBefore && is_allowed_origin(rules, request);
}

void allow_origin(const AccessRules& rules, const httplib::Request& request,
                  httplib::Response& response) {
  if (!is_allowed_origin(rules, request)) return;
  response.set_header("Access-Control-Allow-Origin", rules.cors);
  response.set_header("Vary", "Origin, Access-Control-Request-Headers");
  if (request.method != kAsksBefore) return;
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

bool Body::append(const char* data, std::size_t size) {
  const std::size_t then = text.size() + size;
  const auto more =
      static_cast<std::ptrdiff_t>(std::max(then, kFree) - std::max(text.size(), kFree));
  if ((*budget_ -= more) < 0) {
    *budget_ += more;
    return false;
  }
  taken_ += more;
  text.append(data, size);
  return true;
}

Body read_body(const httplib::Request& request, httplib::Response& response,
               const httplib::ContentReader& reader, BodyBudget& budget, std::size_t largest) {
  if (request.is_multipart_form_data()) {
    throw ApiError(415, "the body must be JSON, not multipart/form-data");
  }
  const ApiError too_large(413, cat("the body is larger than ", largest, " bytes"));
  if (request.get_header_value_u64("Content-Length") > largest) throw ApiError(too_large);
  Body body(budget);
  bool full = false;
  const bool whole = reader([&](const char* data, std::size_t size) {
    full = !body.append(data, size);
    return !full;
  });
  if (whole) return body;
  if (full) {
    throw ApiError(503, "too many large requests at the same time: try again later", {}, "busy");
  }
  if (response.status == 413) throw ApiError(too_large);
  if (response.status == 415) throw ApiError(415, "the body is compressed, which is not supported");
  throw ApiError(400, "the body could not be read to its end");
}

}  // namespace mrrope::serve
