// SPDX-License-Identifier: Apache-2.0
#include "serve/http/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include "support/raw_client.h"
#include "support/test.h"

namespace mrrope::serve {
namespace {

// /health answers at once, /wait when the test says so.
struct Listening {
  explicit Listening(std::size_t connections = 8) : server(connections) {
    server.Get("/health", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("fine", "text/plain");
    });
    server.Get("/wait", [this](const httplib::Request& request, httplib::Response& response) {
      HttpServer::request_is_complete();
      ++waiting;
      while (!release && !HttpServer::client_is_gone(request)) std::this_thread::yield();
      response.set_content("waited", "text/plain");
    });
    port = server.bind_to_any_port("127.0.0.1");
    thread = std::thread([this] { server.listen_after_bind(); });
    server.wait_until_ready();
  }
  ~Listening() {
    release = true;
    server.stop();
    server.close_connections(Connection::Clock::now());
    thread.join();
  }
  HttpServer server;
  int port = 0;
  std::atomic<int> waiting = 0;
  std::atomic<bool> release = false;
  std::thread thread;
};

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST(HttpServer, KeepsAConnectionForSeveralRequests) {
  Listening s;
  RawClient client(s.port);
  for (int i = 0; i < 3; ++i) {
    client.send(get_request("/health"));
    EXPECT_TRUE(contains(client.read_until("fine"), "200 OK"));
  }
  EXPECT_EQ(s.server.bound_address(), "127.0.0.1");
}

// What follows may be the rest of a request that another reader understood differently.
TEST(HttpServer, ClosesAfterEveryError) {
  Listening s;
  std::string many;
  for (int i = 0; i < 150; ++i) many += "H" + std::to_string(i) + ": x\r\n";
  const std::string heads[] = {
      "NONSENSE /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n",
      "junk\r\n",
      get_request("/health", "X: " + std::string(9000, 'a') + "\r\n"),
      get_request("/health", many),
      get_request("/health", "X: a\x01z\r\n"),
      get_request("/health", "no colon\r\n"),
      get_request("/health", "Transfer-Encoding: nonsense\r\n"),
      get_request("/health", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
      get_request("/nothing"),
      get_request("/" + std::string(9000, 'a')),
      "DELETE /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
      "POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"};
  for (const std::string& head : heads) {
    RawClient client(s.port);
    client.send(head + get_request("/health"));
    const std::string said = client.read_until();  // to its end
    EXPECT_EQ(count(said, "HTTP/1.1 "), 1U) << head.substr(0, 60) << "\n" << said;
    EXPECT_EQ(count(said, "HTTP/1.1 4"), 1U) << head.substr(0, 60) << "\n" << said;
  }
  RawClient cut(s.port);  // a head that ends in the middle
  cut.send("GET /health HTTP/1.1\r\nHost: loc");
  cut.close_sending();
  EXPECT_EQ(count(cut.read_until(), "200 OK"), 0U);
}

TEST(HttpServer, SlowClientsAreDroppedForNewOnes) {
  Listening s(3);
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(std::make_unique<RawClient>(s.port));
    slow.back()->send(get_request("/health"));
    slow.back()->read_until("fine");  // it has its thread
    slow.back()->send("GET /health HT");
  }
  for (int i = 0; i < 2; ++i) {
    RawClient other(s.port);
    other.send(get_request("/health", "Connection: close\r\n"));
    EXPECT_EQ(count(other.read_until(), "200 OK"), 1U);
  }
  EXPECT_EQ(count(slow[0]->read_until(), "200 OK"), 0U);  // closed
}

TEST(HttpServer, Answers503WhenAllConnectionsAreBusy) {
  Listening s(2);
  RawClient one(s.port);
  RawClient two(s.port);
  one.send(get_request("/wait"));
  two.send(get_request("/wait"));
  while (s.waiting < 2) std::this_thread::yield();
  RawClient third(s.port);
  third.send(get_request("/health"));
  const std::string said = third.read_until();
  EXPECT_EQ(count(said, "HTTP/1.1 503"), 1U) << said;
  EXPECT_EQ(count(said, "\"code\":\"busy\"}}"), 1U) << said;
  s.release = true;
  EXPECT_EQ(count(one.read_until("waited"), "200 OK"), 1U);
  EXPECT_EQ(count(two.read_until("waited"), "200 OK"), 1U);
}

TEST(HttpServer, StopsWithSilentClients) {
  auto s = std::make_unique<Listening>();
  RawClient idle(s->port);
  idle.send(get_request("/health"));
  idle.read_until("fine");
  RawClient slow(s->port);
  slow.send("GET /he");
  const int port = s->port;
  s.reset();
  EXPECT_EQ(idle.read_until(), "");
  EXPECT_THROW(RawClient{port}, std::runtime_error);
}

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
