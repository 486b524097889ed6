// SPDX-License-Identifier: Apache-2.0
// Who may use the server, and how much they may send.
#pragma once

#include <httplib.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

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

// Bytes that large bodies may still take, all together.
using BodyBudget = std::atomic<std::ptrdiff_t>;

// A body and its share of the budget, until it is destroyed.
class Body {
 public:
  // Every body may have this much: a client that sends little is never refused because others send
  // much.
  static constexpr std::size_t kFree = std::size_t{64} << 10;

  explicit Body(BodyBudget& budget) : budget_(&budget) {}
  Body(Body&& other) noexcept
      : text(std::move(other.text)),
        budget_(other.budget_),
        taken_(std::exchange(other.taken_, 0)) {}
  Body& operator=(Body&&) = delete;
  ~Body() { *budget_ += taken_; }

  // False where the budget has no room for it.
  bool append(const char* data, std::size_t size);

  std::string text;

 private:
  BodyBudget* budget_;
  std::ptrdiff_t taken_ = 0;
};

// Throws ApiError: 413, 415, 503, or 400 where the client sent less than it announced.
Body read_body(const httplib::Request& request, httplib::Response& response,
               const httplib::ContentReader& reader, BodyBudget& budget, std::size_t largest);

}  // namespace mrrope::serve
