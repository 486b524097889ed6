// SPDX-License-Identifier: Apache-2.0
#include "serve/http/body.h"

#include <algorithm>

#include "base/text.h"
#include "serve/api/error.h"

namespace mrrope::serve {

bool BodyBudget::take(std::size_t bytes) noexcept {
  const auto size = static_cast<std::ptrdiff_t>(bytes);
  if ((left_ -= size) >= 0) return true;
  left_ += size;
  return false;
}

bool Body::append(const char* data, std::size_t size) {
  const std::size_t now = text.size() > kFree ? text.size() - kFree : 0;
  const std::size_t then = text.size() + size > kFree ? text.size() + size - kFree : 0;
  if (then > now) {
    if (!budget_->take(then - now)) return false;
    taken_ += then - now;
  }
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
