// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "serve/http/http_server.h"

namespace mrrope::serve {
namespace {

int status(const AccessRules& rules, const httplib::Headers& headers,
           const std::string& path = "/v1/models") {
  httplib::Request request;
  request.path = path;
  request.headers = headers;
  const auto error = denied(rules, request);
  return error ? error->status : 200;
}

TEST(Access, OnLoopbackOnlyLoopbackHostsAreAllowed) {
  const AccessRules here{true, ""};
  EXPECT_EQ(status(here, {{"Host", "localhost:8080"}}), 200);
  EXPECT_EQ(status(here, {{"Host", "127.0.0.1:8080"}}), 200);
  EXPECT_EQ(status(here, {{"Host", "[::1]:8080"}}), 200);
  EXPECT_EQ(status(here, {{"Host", "evil.example"}}), 403);
  EXPECT_EQ(status(here, {{"Host", "127.evil.example"}}), 403);
  EXPECT_EQ(status(here, {{"Host", "127.0.0.1.evil.example:8080"}}), 403);
  EXPECT_EQ(status(AccessRules{false, ""}, {{"Host", "some.name"}}), 200);
}

TEST(Access, RepeatedHeadersAreRefused) {
  const AccessRules rules{true, "key"};
  EXPECT_EQ(status(rules, {{"Host", "localhost"}, {"Host", "evil.example"}}), 400);
  EXPECT_EQ(status(rules, {{"Host", "localhost"}, {"Host", "localhost"}}), 400);
  EXPECT_EQ(status(rules, {{"Authorization", "Bearer key"}, {"Authorization", "Bearer x"}}), 400);
  EXPECT_EQ(status(rules, {{"X-Api-Key", "key"}, {"X-Api-Key", "key"}}), 400);
}

TEST(Access, CrossOriginRequestsAreRefused) {
  const AccessRules rules{true, ""};
  const std::string own = "127.0.0.1:8080";
  EXPECT_EQ(status(rules, {{"Host", own}, {"Origin", "http://" + own}}), 200);
  EXPECT_EQ(status(rules, {{"Host", own}, {"Origin", "http://evil.example"}}), 403);
  EXPECT_EQ(status(rules, {{"Host", own}, {"Origin", "null"}}), 403);
}

TEST(Access, KeyIsRequired) {
  const AccessRules rules{true, "sesame"};
  EXPECT_EQ(status(rules, {}), 401);
  EXPECT_EQ(status(rules, {{"Authorization", "Bearer sesam"}}), 401);
  EXPECT_EQ(status(rules, {{"Authorization", "Bearer sesame1"}}), 401);
  EXPECT_EQ(status(rules, {{"Authorization", "sesame"}}), 401);
  EXPECT_EQ(status(rules, {{"Authorization", "Bearer sesame"}}), 200);
  EXPECT_EQ(status(rules, {{"X-Api-Key", "sesame"}}), 200);
  EXPECT_EQ(status(rules, {{"X-Api-Key", "sesam"}}), 401);
  EXPECT_EQ(status(rules, {{"X-Api-Key", ""}}), 401);
  EXPECT_EQ(status(rules, {}, "/health"), 200);
  EXPECT_EQ(status(rules, {}, "/v1/health"), 200);
  EXPECT_EQ(status(rules, {}, "/"), 200);
  EXPECT_EQ(status(rules, {}, "/metrics"), 401);
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
