// SPDX-License-Identifier: Apache-2.0
#include "serve/http/connection.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace mrrope::serve {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRequestTimeout{10000};  // for a request, and more as more of it arrives:
constexpr std::int64_t kBytesPerMs = 64;        // 64 KB/s
constexpr milliseconds kWriteTimeout{30000};    // without reading a single byte
constexpr milliseconds kShutdownWriteTimeout{3000};  // the same, when the server shuts down
constexpr milliseconds kWritePoll{250};
constexpr milliseconds kBetweenProbes{1000};

#ifdef POLLRDHUP
constexpr short kPeerClosed = POLLRDHUP;
#else
constexpr short kPeerClosed = 0;
#endif

// The events that are there before the time has passed; 0 if none.
short events(int socket, short wanted, Connection::Clock::time_point until) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(until - Connection::Clock::now()).count();
    pollfd wait{socket, wanted, 0};
    const int n = ::poll(&wait, 1, left > 0 ? static_cast<int>(left) : 0);
    if (n < 0 && errno == EINTR) continue;
    return n > 0 ? wait.revents : short{0};
  }
}

bool ready(int socket, short what, Connection::Clock::time_point until) {
  return events(socket, what, until) != 0;
}

SocketAddress address(int socket, int (*of)(int, sockaddr*, socklen_t*)) {
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

}  // namespace

SocketAddress local_address(int socket) { return address(socket, ::getsockname); }
SocketAddress remote_address(int socket) { return address(socket, ::getpeername); }

bool Connection::request_begins(milliseconds patience) const {
  return at_ < size_ || ready(socket_, POLLIN, Clock::now() + patience);
}

void Connection::restart() {
  began_ = Clock::now();
  taken_ = 0;
}

bool Connection::half_closed() const {
  if (kPeerClosed != 0) return (events(socket_, kPeerClosed, {}) & kPeerClosed) != 0;
  char byte = 0;
  return ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void Connection::probe() {
  if (Clock::now() - probed_ < kBetweenProbes) return;
  probed_ = Clock::now();
  constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";
  (void)::send(socket_, kInterim.data(), kInterim.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Connection::close_gently() {
  ::shutdown(socket_, SHUT_WR);
  char rest[16384];
  const auto until = Clock::now() + milliseconds(500);
  for (std::size_t total = 0; total < (std::size_t{16} << 20) && ready(socket_, POLLIN, until);) {
    const ssize_t n = ::recv(socket_, rest, sizeof rest, MSG_DONTWAIT);
    if (n <= 0) break;
    total += static_cast<std::size_t>(n);
  }
  ::close(socket_);
}

bool Connection::is_readable() const { return at_ < size_ || ready(socket_, POLLIN, {}); }

bool Connection::wait_readable() const { return at_ < size_ || ready(socket_, POLLIN, deadline()); }

bool Connection::wait_writable() const {
  for (const auto start = Clock::now();;) {
    const auto now = Clock::now();
    const auto until = start + (shutting_down_ ? kShutdownWriteTimeout : kWriteTimeout);
    if (ready(socket_, POLLOUT, std::min(until, now + kWritePoll))) return true;
    if (now >= until) return false;
  }
}

bool Connection::is_peer_alive() const {
  return (events(socket_, 0, {}) & (POLLERR | POLLHUP | POLLNVAL)) == 0;
}

ssize_t Connection::read(char* to, size_t size) {
  if (at_ == size_ && !fill()) return -1;
  const size_t count = std::min(size, size_ - at_);
  std::copy_n(buffer_ + at_, count, to);
  at_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* from, size_t size) {
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

const char* Connection::buffered_data(size_t& size) const {
  size = size_ - at_;
  return size > 0 ? buffer_ + at_ : nullptr;
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  const SocketAddress a = remote_address(socket_);
  ip = a.ip;
  port = a.port;
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  const SocketAddress a = local_address(socket_);
  ip = a.ip;
  port = a.port;
}

time_t Connection::duration() const {
  return std::chrono::duration_cast<milliseconds>(Clock::now() - began_).count();
}

Connection::Clock::time_point Connection::deadline() const {
  return began_ + kRequestTimeout + milliseconds(taken_ / kBytesPerMs);
}

bool Connection::fill() {
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

}  // namespace mrrope::serve
