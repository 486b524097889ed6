// SPDX-License-Identifier: Apache-2.0
// One client's socket as cpp-httplib's server reads and writes it. A request must arrive within a
// time that grows with what has arrived, so that a client that sends a byte now and then does not
// hold a thread for long.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace mrrope::serve {

struct SocketAddress {
  std::string ip;
  int port = 0;
};

SocketAddress local_address(int socket);
SocketAddress remote_address(int socket);

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

}  // namespace mrrope::serve
