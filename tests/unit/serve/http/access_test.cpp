// SPDX-License-Identifier: Apache-2.0
#include "serve/http/http_server.h"
#include "support/test.h"

namespace mrrope::serve {
namespace {

// "denied KEY | PATH | NAME: VALUE...": the status, on loopback; "outside" without it.
int status(bool loopback, const Arguments& a) {
  httplib::Request request;
  request.path = a.at(1);
  for (std::size_t i = 2; i < a.size(); ++i) {
    const std::size_t colon = a[i].find(": ");
    request.headers.emplace(a[i].substr(0, colon), a[i].substr(colon + 2));
  }
  const auto error = denied({loopback, a[0]}, request);
  return error ? error->status : 200;
}

TEST(Access, IsDeniedOrNot) {
  test::expect_functions("access",
                         {{"here", [](auto& a) { return std::to_string(status(true, a)); }},
                          {"outside", [](auto& a) { return std::to_string(status(false, a)); }}});
}

TEST(Body, ReservesAndReleasesMemory) {
  BodyBudget budget(1000);
  const std::string some(Body::kFree + 600, 'x');
  {
    Body first(budget);
    EXPECT_TRUE(first.append(some.data(), some.size()));
    EXPECT_EQ(first.text, some);
    Body second(budget);
    EXPECT_FALSE(second.append(some.data(), some.size()));
    EXPECT_TRUE(second.append(some.data(), Body::kFree));  // little is always allowed
    EXPECT_TRUE(second.append(some.data(), 400));
    EXPECT_FALSE(second.append(some.data(), 1));
    const Body moved = std::move(first);
    EXPECT_EQ(moved.text, some);
  }
  Body third(budget);
  EXPECT_TRUE(third.append(some.data(), some.size()));
}

}  // namespace
}  // namespace mrrope::serve
