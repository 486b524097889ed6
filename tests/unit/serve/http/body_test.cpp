// SPDX-License-Identifier: Apache-2.0
#include "serve/http/body.h"

#include <gtest/gtest.h>

#include <optional>

namespace mrrope::serve {
namespace {

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
