// SPDX-License-Identifier: Apache-2.0
#include "serve/http/connection.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>

namespace mrrope {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kToAsk{10000};         // for a request, and more as more of it comes:
constexpr std::int64_t kBytesPerMs = 64;      // 64 KB/s
constexpr milliseconds kToTakeAnswer{30000};  // without taking a single byte
constexpr milliseconds kIdle{5000};           // between two requests of one connection
constexpr milliseconds kPoll{250};            // how often an idle connection looks for the end

// Whether the socket is ready; false when the time has passed.
bool ready(int socket, short what, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
    pollfd wait{socket, what, 0};
    const int n = ::poll(&wait, 1, left > 0 ? static_cast<int>(left) : 0);
    if (n < 0 && errno == EINTR) continue;
    return n > 0;
  }
}

struct Address {
  std::string ip;
  int port = 0;
};

Address address(int socket, int (*of)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* any = reinterpret_cast<sockaddr*>(&storage);
  char ip[NI_MAXHOST] = {};
  char port[NI_MAXSERV] = {};
  if (of(socket, any, &size) != 0 || ::getnameinfo(any, size, ip, sizeof ip, port, sizeof port,
                                                   NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {};
  }
  return {ip, std::atoi(port)};
}

class Connection final : public httplib::Stream {
 public:
  explicit Connection(int socket) : socket_(socket) {}

  bool is_readable() const override { return at_ < size_ || ready(socket_, POLLIN, {}); }
  bool wait_readable() const override { return at_ < size_ || ready(socket_, POLLIN, deadline()); }
  bool wait_writable() const override {
    return ready(socket_, POLLOUT, Clock::now() + kToTakeAnswer);
  }
  bool is_peer_alive() const override {
    char byte = 0;
    const ssize_t n = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
  }

  ssize_t read(char* to, size_t size) override {
    if (at_ == size_ && !fill()) return -1;
    const size_t count = std::min(size, size_ - at_);
    std::copy_n(buffer_ + at_, count, to);
    at_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* from, size_t size) override {
    if (!wait_writable()) return -1;
    for (;;) {
      const ssize_t n = ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) return n;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        if (!wait_writable()) return -1;
      } else if (errno != EINTR) {
        return -1;
      }
    }
  }

  const char* buffered_data(size_t& size) const override {
    size = size_ - at_;
    return size > 0 ? buffer_ + at_ : nullptr;
  }
  void consume_buffered(size_t size) override { at_ += size; }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    const Address a = address(socket_, ::getpeername);
    ip = a.ip;
    port = a.port;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    const Address a = address(socket_, ::getsockname);
    ip = a.ip;
    port = a.port;
  }
  socket_t socket() const override { return socket_; }
  time_t duration() const override {
    return std::chrono::duration_cast<milliseconds>(Clock::now() - began_).count();
  }
  // The next request; some of it may be here already.
  bool begun() const { return at_ < size_; }
  void restart() {
    began_ = Clock::now();
    taken_ = 0;
  }

 private:
  Clock::time_point deadline() const {
    return began_ + kToAsk + milliseconds(taken_ / kBytesPerMs);
  }

  bool fill() {
    if (!ready(socket_, POLLIN, deadline())) {
      error_ = httplib::Error::Timeout;
      return false;
    }
    const ssize_t n = ::recv(socket_, buffer_, sizeof buffer_, 0);
    if (n <= 0) {
      error_ = n == 0 ? httplib::Error::ConnectionClosed : httplib::Error::Read;
      return false;
    }
    at_ = 0;
    size_ = static_cast<size_t>(n);
    taken_ += n;
    return true;
  }

  int socket_;
  Clock::time_point began_ = Clock::now();
  std::int64_t taken_ = 0;
  char buffer_[16384];
  size_t at_ = 0;
  size_t size_ = 0;
};

// Lets the client read the answer before the connection is gone: closing with unread data in it
// would take the answer back.
void close_gently(int socket) {
  ::shutdown(socket, SHUT_WR);
  char rest[16384];
  const auto until = Clock::now() + milliseconds(500);
  for (std::size_t total = 0; total < (std::size_t{16} << 20) && ready(socket, POLLIN, until);) {
    const ssize_t n = ::recv(socket, rest, sizeof rest, 0);
    if (n <= 0) break;
    total += static_cast<std::size_t>(n);
  }
  ::close(socket);
}

}  // namespace

bool ConnectionThreads::enqueue(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (running_ >= most_) return false;
    ++running_;
  }
  try {
    std::thread([this, work = std::move(work)] {
      work();
      const std::lock_guard lock(mutex_);
      --running_;
      ended_.notify_all();
    }).detach();
    return true;
  } catch (const std::system_error&) {
    const std::lock_guard lock(mutex_);
    --running_;
    return false;
  }
}

void ConnectionThreads::shutdown() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return running_ == 0; });
}

bool HttpServer::process_and_close_socket(socket_t socket) {
  const Address remote = address(socket, ::getpeername);
  const Address local = address(socket, ::getsockname);
  const bool fine = serve_guarded([&] {
    Connection connection(socket);
    bool good = true;
    for (std::size_t left = keep_alive_max_count_; left > 0 && good; --left) {
      const auto until = Clock::now() + kIdle;
      while (!connection.begun() && !ready(socket, POLLIN, std::min(until, Clock::now() + kPoll))) {
        if (svr_sock_ == INVALID_SOCKET || Clock::now() >= until) return good;
      }
      connection.restart();
      bool closed = false;
      good = process_request(connection, remote.ip, remote.port, local.ip, local.port, left == 1,
                             closed, nullptr);
      if (closed) break;
    }
    return good;
  });
  close_gently(socket);
  return fine;
}

}  // namespace mrrope
