// SPDX-License-Identifier: Apache-2.0
// cpp-httplib's server with stricter connections: one is closed after every error, since what
// follows may be the rest of the request that could not be read; and when there are too many, those
// that have not finished their request make room, the oldest first.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>

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
  // Starts the clock for the next request.
  void restart();

  // Whether the client has closed its sending side. It may still read: only an attempt to send
  // something tells.
  bool half_closed() const;
  // Sends an interim response, which a client that is gone answers with a reset.
  void probe();
  // Lets the client read the answer before the connection is gone: closing with unread input would
  // discard the answer. Closes the socket.
  void close_gently();

  // Of httplib::Stream. is_peer_alive: not reset.
  bool is_readable() const override;
  bool wait_readable() const override;
  bool wait_writable() const override;
  bool is_peer_alive() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  const char* buffered_data(size_t& size) const override;
  void consume_buffered(size_t size) override { at_ += size; }
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }
  time_t duration() const override;

 private:
  Clock::time_point deadline() const;
  bool fill();

  int socket_;
  const std::atomic<bool>& shutting_down_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point probed_;
  std::int64_t taken_ = 0;
  char buffer_[16384];
  size_t at_ = 0;
  size_t size_ = 0;
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
