// SPDX-License-Identifier: Apache-2.0
// The bodies of requests, with a limit on the memory that all of them take together.
#pragma once

#include <httplib.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

namespace mrrope::serve {

// Bytes that large bodies may take at the same time.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t bytes) : left_(static_cast<std::ptrdiff_t>(bytes)) {}
  bool take(std::size_t bytes) noexcept;
  void give_back(std::size_t bytes) noexcept { left_ += static_cast<std::ptrdiff_t>(bytes); }

 private:
  std::atomic<std::ptrdiff_t> left_;
};

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
  ~Body() { budget_->give_back(taken_); }

  // False where the budget has no room for it.
  bool append(const char* data, std::size_t size);

  std::string text;

 private:
  BodyBudget* budget_;
  std::size_t taken_ = 0;
};

// Throws ApiError: 413, 415, 503, or 400 where the client sent less than it announced.
Body read_body(const httplib::Request& request, httplib::Response& response,
               const httplib::ContentReader& reader, BodyBudget& budget, std::size_t largest);

}  // namespace mrrope::serve
