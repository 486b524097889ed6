// SPDX-License-Identifier: Apache-2.0
// cpp-httplib's server with stricter connections: one is closed after every error, since what
// follows may be the rest of the request that could not be read; and when there are too many, those
// that have not finished their request make room, the oldest first. Who may use it, and how much
// they may send.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "serve/api/request.h"

namespace mrrope::serve {

// One client's socket as cpp-httplib's server reads and writes it. A request must arrive within a
// time that grows with what has arrived, so that a client that sends a byte now and then does not
// hold a thread for long.
class Connection final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;

  // shutting_down: while it is true, a client has less time to read.
  Connection(int socket, const std::atomic<bool>& shutting_down)
      : socket_(socket), shutting_down_(shutting_down) {}

  // Whether a request begins before the time has passed. Some of it may already be here.
  bool request_begins(std::chrono::milliseconds patience) const;
  // Whether the client has closed its sending side. It may still read: only an attempt to send
  // something tells.
  bool half_closed() const;
  // Sends an interim response, which a client that is gone answers with a reset.
  void probe();
  // Lets the client read the answer before the connection is gone: closing with unread input would
  // discard the answer. Closes the socket.
  void close_gently();
  // Its thread finds the socket closed, and ends.
  void drop();

  // Of httplib::Stream. is_peer_alive: not reset.
  bool is_readable() const override { return request_begins({}); }
  bool wait_readable() const override { return is_readable(); }  // not called by the server
  bool wait_writable() const override;
  bool is_peer_alive() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  const char* buffered_data(size_t& size) const override;
  void consume_buffered(size_t size) override { at_ += size; }
  void get_remote_ip_and_port(std::string&, int&) const override {}  // nobody asks
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }
  time_t duration() const override { return 0; }

 private:
  friend class HttpServer;
  bool fill();

  int socket_;
  const std::atomic<bool>& shutting_down_;
  Clock::time_point began_ = Clock::now();  // the request, whose clock is this
  Clock::time_point probed_;
  std::int64_t taken_ = 0;
  char buffer_[16384];
  size_t at_ = 0;
  size_t size_ = 0;

  // For the server, which guards all but the last.
  Clock::time_point since_ = Clock::now();  // it waits for (the rest of) a request
  bool waiting_ = true;
  bool dropped_ = false;
  bool close_ = false;  // after this response
};

class HttpServer final : public httplib::Server {
 public:
  // connections: how many are served at the same time. A further one closes the oldest of those
  // that have not sent a whole request yet; if there is none, it is answered with 503.
  explicit HttpServer(std::size_t connections);

  // The address that it is bound to; empty before that.
  std::string bound_address() const;

  // From now on a client that does not read its answer is given up after three seconds.
  void begin_shutdown() { shutting_down_ = true; }
  // After stop(): closes what has no whole request at once, and the rest at this time. Returns when
  // all are closed.
  void close_connections(Connection::Clock::time_point until);

  // On the thread of a connection, in a handler. Its request has arrived: it stays open until it is
  // answered.
  static void request_is_complete();
  // Whether the client can no longer read the answer. Before the response begins, one that has
  // closed its sending side is asked with an interim response.
  static bool client_is_gone(const httplib::Request& request);
  static bool client_is_half_closed();

 private:
  bool process_and_close_socket(socket_t socket) override;
  bool admit(Connection& connection);
  void set_waiting(Connection& connection, bool waiting);

  const std::size_t max_;
  std::atomic<bool> shutting_down_ = false;
  mutable std::mutex mutex_;
  std::condition_variable left_;
  std::set<Connection*> open_;

  static thread_local Connection* current_;
  static thread_local HttpServer* serving_;
};

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

  explicit Body(BodyBudget& budget) : share_(&budget, GiveBack{0}) {}

  // False where the budget has no room for it.
  bool append(const char* data, std::size_t size);

  std::string text;

 private:
  struct GiveBack {
    std::ptrdiff_t taken;
    void operator()(BodyBudget* budget) const { *budget += taken; }
  };
  std::unique_ptr<BodyBudget, GiveBack> share_;
};

// Throws ApiError: 413, 415, 503, or 400 where the client sent less than it announced.
Body read_body(const httplib::Request& request, httplib::Response& response,
               const httplib::ContentReader& reader, BodyBudget& budget, std::size_t largest);

}  // namespace mrrope::serve
