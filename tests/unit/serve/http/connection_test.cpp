// SPDX-License-Identifier: Apache-2.0
#include "serve/http/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace mrrope::serve {
namespace {

std::array<int, 2> connected() {
  std::array<int, 2> ends = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  return ends;
}

struct Pair {
  ~Pair() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  const std::array<int, 2> ends = connected();
  std::atomic<bool> shutting_down = false;
  Connection server{ends[0], shutting_down};
};

TEST(Connection, ReadsWhatTheClientSends) {
  Pair pair;
  EXPECT_FALSE(pair.server.request_begins(std::chrono::milliseconds(0)));
  ASSERT_EQ(::send(pair.ends[1], "abcdef", 6, 0), 6);
  EXPECT_TRUE(pair.server.request_begins(std::chrono::milliseconds(0)));
  char some[4] = {};
  EXPECT_EQ(pair.server.read(some, 4), 4);
  EXPECT_EQ(std::string(some, 4), "abcd");
  size_t left = 0;
  EXPECT_NE(pair.server.buffered_data(left), nullptr);
  EXPECT_EQ(left, 2U);
  EXPECT_TRUE(pair.server.is_readable());
}

TEST(Connection, TellsHalfClosedFromDisconnected) {
  Pair pair;
  EXPECT_FALSE(pair.server.half_closed());
  EXPECT_TRUE(pair.server.is_peer_alive());
  ::shutdown(pair.ends[1], SHUT_WR);
  EXPECT_TRUE(pair.server.half_closed());
  EXPECT_TRUE(pair.server.is_peer_alive());
  EXPECT_EQ(pair.server.write("answer", 6), 6);
  ::shutdown(pair.ends[1], SHUT_RDWR);
  EXPECT_FALSE(pair.server.is_peer_alive());
  EXPECT_EQ(pair.server.write("answer", 6), -1);
}

// Half a minute otherwise.
TEST(Connection, GivesUpSoonerDuringShutdown) {
  Pair pair;
  pair.shutting_down = true;
  const std::string much(1 << 16, 'x');
  const auto start = Connection::Clock::now();
  while (pair.server.write(much.data(), much.size()) > 0) {
  }
  EXPECT_LT(Connection::Clock::now() - start, std::chrono::seconds(25));
}

}  // namespace
}  // namespace mrrope::serve
