// SPDX-License-Identifier: Apache-2.0
#include "base/net.h"

#include <gtest/gtest.h>

namespace mrrope {
namespace {

TEST(Net, LoopbackIsExact) {
  for (const char* host :
       {"localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "127.255.255.255", "::1", "[::1]"}) {
    EXPECT_TRUE(is_loopback_host(host)) << host;
  }
  for (const char* host : {"",
                           "127.",
                           "127.0.0",
                           "127.0.0.1.",
                           "127.0.0.1.evil.example",
                           "127.evil.example",
                           "127.1",
                           "127.0.0.256",
                           "127.0.0.01",
                           "0127.0.0.1",
                           "127.0.0.1 ",
                           "127.0.0.+1",
                           "127.0.0.0.1",
                           "128.0.0.1",
                           "10.0.0.1",
                           "localhost.",
                           "localhost.evil.example",
                           "localhos",
                           "[::1",
                           "::1%lo",
                           "[::ffff:127.0.0.1]",
                           "127.0.0.x",
                           "127..0.1"}) {
    EXPECT_FALSE(is_loopback_host(host)) << host;
  }
}

TEST(Net, StripsThePortOfAnAuthority) {
  EXPECT_EQ(host_of_authority("localhost:8080"), "localhost");
  EXPECT_EQ(host_of_authority("localhost"), "localhost");
  EXPECT_EQ(host_of_authority("[::1]:8080"), "[::1]");
  EXPECT_EQ(host_of_authority("[::1]"), "[::1]");
  EXPECT_EQ(host_of_authority("127.0.0.1:80:90"), "127.0.0.1");
  EXPECT_EQ(host_of_authority(""), "");
}

}  // namespace
}  // namespace mrrope
