// SPDX-License-Identifier: Apache-2.0
// cpp-httplib's server with stricter connections: one is closed after every error, since what
// follows may be the rest of the request that could not be read; and when there are too many, those
// that have not finished their request make room, the oldest first.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "serve/http/connection.h"

namespace mrrope::serve {

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
  struct Open {
    Connection connection;
    Connection::Clock::time_point since;  // it waits for (the rest of) a request
    bool waiting = true;
    bool dropped = false;
    bool close = false;  // after this response

    Open(int socket, const std::atomic<bool>& shutting_down)
        : connection(socket, shutting_down), since(Connection::Clock::now()) {}
  };

  bool process_and_close_socket(socket_t socket) override;
  bool admit(Open& open);
  void leave(Open& open);
  void set_waiting(Open& open, bool waiting);
  static void drop(Open& open);

  const std::size_t max_;
  std::atomic<bool> shutting_down_ = false;
  mutable std::mutex mutex_;
  std::condition_variable left_;
  std::set<Open*> open_;

  static thread_local Open* current_;
  static thread_local HttpServer* serving_;
};

// A thread for each connection, up to a limit; further ones are closed. A pool would let a
// connection wait behind those that say nothing.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(std::size_t most) : max_(most) {}
  bool enqueue(std::function<void()> work) override;
  void shutdown() override;  // waits for all

 private:
  const std::size_t max_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_ = 0;
};

}  // namespace mrrope::serve
