// SPDX-License-Identifier: Apache-2.0
#include "serve/http/http_server.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/text.h"

namespace mrrope::serve {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kIdleTimeout{5000};  // between two requests of one connection
constexpr milliseconds kEndPoll{250};       // how often a waiting connection checks for the end
constexpr std::size_t kSpareThreads = 64;  // threads that answer clients for which there is no room

constexpr milliseconds kRequestTimeout{10000};  // for a request, and more as more of it arrives:
constexpr std::int64_t kBytesPerMs = 64;        // 64 KB/s
constexpr milliseconds kWriteTimeout{30000};    // without reading a single byte
constexpr milliseconds kShutdownWriteTimeout{3000};  // the same, when the server shuts down
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
    const int n = ::poll(&wait, 1, left > 0 ? int(left) : 0);
    if (n >= 0 || errno != EINTR) return n > 0 ? wait.revents : short{0};
  }
}

bool ready(int socket, short what, Connection::Clock::time_point until) {
  return events(socket, what, until) != 0;
}

std::string busy_response() {
  const std::string body = R"({"error":{"message":"all connections are in use: try again later",)"
                           R"("type":"server_error","param":null,"code":"busy"}})";
  return cat("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n",
             "Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}

constexpr const char* kAsksBefore = "OPTIONS";  // of a browser, see is_preflight()

// Constant-time comparison.
bool same_secret(const std::string& given, const std::string& secret) {
  unsigned char differs = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const char c = i < given.size() ? given[i] : '\0';
    differs = static_cast<unsigned char>(differs | (c ^ secret[i]));
  }
  return differs == 0;
}

bool needs_no_key(const std::string& path) {
  static constexpr std::array kOpen = {"/", "/page.css", "/page.js", "/health", "/v1/health"};
  return has(kOpen, path);
}

bool is_allowed_origin(const AccessRules& rules, const httplib::Request& request) {
  const std::string origin = request.get_header_value("Origin");
  return !origin.empty() && (rules.cors == "*" || rules.cors == origin);
}

// A thread for each connection, up to a limit; further ones are closed. A pool would let a
// connection wait behind those that say nothing.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(std::size_t most) : max_(most) {}

  bool enqueue(std::function<void()> work) override {
    const std::lock_guard lock(mutex_);
    if (running_ >= max_) return false;
    try {
      std::thread([this, work = std::move(work)] {
        work();
        const std::lock_guard end(mutex_);
        --running_;
        ended_.notify_all();
      }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    ++running_;
    return true;
  }

  void shutdown() override {  // waits for all
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  const std::size_t max_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_ = 0;
};

}  // namespace

bool Connection::request_begins(milliseconds patience) const {
  return at_ < size_ || ready(socket_, POLLIN, Clock::now() + patience);
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
    total += std::size_t(n);
  }
  ::close(socket_);
}

bool Connection::wait_writable() const {
  for (const auto start = Clock::now();;) {
    const auto now = Clock::now();
    const auto until = start + (shutting_down_ ? kShutdownWriteTimeout : kWriteTimeout);
    if (ready(socket_, POLLOUT, std::min(until, now + kEndPoll))) return true;
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
  return ssize_t(count);
}

ssize_t Connection::write(const char* from, size_t size) {
  while (wait_writable()) {
    const ssize_t n = ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) break;
  }
  return -1;
}

const char* Connection::buffered_data(size_t& size) const {
  size = size_ - at_;
  return size > 0 ? buffer_ + at_ : nullptr;
}

bool Connection::fill() {
  if (!ready(socket_, POLLIN, began_ + kRequestTimeout + milliseconds(taken_ / kBytesPerMs))) {
    error_ = httplib::Error::Timeout;
    return false;
  }
  const ssize_t n = ::recv(socket_, buffer_, sizeof buffer_, 0);
  if (n <= 0) {
    error_ = n == 0 ? httplib::Error::ConnectionClosed : httplib::Error::Read;
    return false;
  }
  at_ = 0;
  size_ = size_t(n);
  taken_ += n;
  return true;
}

thread_local Connection* HttpServer::current_ = nullptr;
thread_local HttpServer* HttpServer::serving_ = nullptr;

HttpServer::HttpServer(std::size_t connections) : max_(connections) {
  new_task_queue = [connections] { return new ConnectionThreads(connections + kSpareThreads); };
  // The library announces the end of a connection in every refusal, also of a request that it could
  // not read, and then goes on reading.
  set_post_routing_handler([](const httplib::Request&, httplib::Response& response) {
    if (current_ != nullptr && response.get_header_value("Connection") == "close") {
      current_->close_ = true;
    }
  });
}

std::string HttpServer::bound_address() const {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* any = reinterpret_cast<sockaddr*>(&storage);
  char host[NI_MAXHOST] = {};
  const bool bound = ::getsockname(svr_sock_, any, &size) == 0 &&
                     ::getnameinfo(any, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0;
  return bound ? host : "";
}

void Connection::drop() {
  dropped_ = true;
  ::shutdown(socket_, SHUT_RDWR);
}

bool HttpServer::admit(Connection& connection) {
  const std::lock_guard lock(mutex_);
  std::size_t served = 0;
  Connection* oldest = nullptr;
  for (Connection* other : open_) {
    if (other->dropped_) continue;
    ++served;
    if (other->waiting_ && (oldest == nullptr || other->since_ < oldest->since_)) oldest = other;
  }
  if (served >= max_) {
    if (oldest == nullptr) return false;
    oldest->drop();
  }
  open_.insert(&connection);
  return true;
}

void HttpServer::set_waiting(Connection& connection, bool waiting) {
  const std::lock_guard lock(mutex_);
  connection.waiting_ = waiting;
  if (waiting) connection.since_ = Connection::Clock::now();
}

void HttpServer::close_connections(Connection::Clock::time_point until) {
  std::unique_lock lock(mutex_);
  while (!open_.empty()) {
    const bool late = Connection::Clock::now() >= until;
    for (Connection* open : open_) {
      if (!open->dropped_ && (open->waiting_ || late)) open->drop();
    }
    left_.wait_for(lock, kEndPoll);
  }
}

void HttpServer::request_is_complete() {
  if (current_ != nullptr) serving_->set_waiting(*current_, false);
}

bool HttpServer::client_is_half_closed() { return current_ != nullptr && current_->half_closed(); }

bool HttpServer::client_is_gone(const httplib::Request& request) {
  if (current_ == nullptr) return false;
  if (!current_->is_peer_alive()) return true;
  if (current_->half_closed() && request.version != "HTTP/1.0") current_->probe();
  return false;
}

bool HttpServer::process_and_close_socket(socket_t socket) {
  Connection connection(socket, shutting_down_);
  if (!admit(connection)) {
    const std::string refusal = busy_response();
    connection.write(refusal.data(), refusal.size());
    connection.close_gently();
    return false;
  }
  current_ = &connection;
  serving_ = this;
  const bool fine = serve_guarded([&] {
    bool good = true;
    for (std::size_t left = keep_alive_max_count_; left > 0 && good; --left) {
      set_waiting(connection, true);
      const auto until = Connection::Clock::now() + kIdleTimeout;
      while (!connection.request_begins(kEndPoll)) {
        if (svr_sock_ == INVALID_SOCKET || Connection::Clock::now() >= until) return good;
      }
      connection.began_ = Connection::Clock::now();
      connection.taken_ = 0;
      bool closed = false;
      good = process_request(connection, {}, 0, {}, 0, left == 1, closed, nullptr);
      if (closed || connection.close_) break;
    }
    return good;
  });
  current_ = nullptr;
  serving_ = nullptr;
  {
    const std::lock_guard lock(mutex_);
    open_.erase(&connection);
    left_.notify_all();
  }
  connection.close_gently();
  return fine;
}

bool is_preflight(const AccessRules& rules, const httplib::Request& request) {
  return request.method == kAsksBefore && is_allowed_origin(rules, request);
}

void allow_origin(const AccessRules& rules, const httplib::Request& request,
                  httplib::Response& response) {
  if (!is_allowed_origin(rules, request)) return;
  response.set_header("Access-Control-Allow-Origin", rules.cors);
  response.set_header("Vary", "Origin, Access-Control-Request-Headers");
  if (request.method != kAsksBefore) return;
  response.set_header("Access-Control-Allow-Methods", "GET, POST");
  // Clients add headers of their own, and "*" would leave out Authorization.
  const std::string wanted = request.get_header_value("Access-Control-Request-Headers");
  response.set_header("Access-Control-Allow-Headers",
                      wanted.empty() ? "Authorization, Content-Type" : wanted);
  response.set_header("Access-Control-Max-Age", "600");
}

std::optional<ApiError> denied(const AccessRules& rules, const httplib::Request& request) {
  // Two readers could take different ones: a proxy the first, this server the second.
  for (const char* name : {"Host", "Origin", "Authorization", "X-Api-Key"}) {
    if (request.get_header_value_count(name) > 1) {
      return ApiError(400, cat("the request has more than one ", name, " header"), {},
                      "repeated_header");
    }
  }
  const std::string host = request.get_header_value("Host");
  if (rules.loopback && !host.empty() && !is_loopback_host(host_of_authority(host))) {
    return ApiError(403, "this server only accepts requests to localhost", {}, "wrong_host");
  }
  const std::string origin = request.get_header_value("Origin");
  const bool own =
      origin.empty() || origin == cat("http://", host) || origin == cat("https://", host);
  if (!own && !is_allowed_origin(rules, request)) {
    return ApiError(403, "cross-origin requests are blocked: start the server with --cors ORIGIN",
                    {}, "wrong_origin");
  }
  if (is_preflight(rules, request)) return std::nullopt;  // it has no key yet
  if (rules.key.empty() || needs_no_key(request.path)) return std::nullopt;
  const std::string given = request.get_header_value("Authorization");
  if (given.rfind("Bearer ", 0) == 0 && same_secret(given.substr(7), rules.key)) {
    return std::nullopt;
  }
  if (same_secret(request.get_header_value("X-Api-Key"), rules.key)) return std::nullopt;
  return ApiError(401,
                  "this server requires its API key: Authorization: Bearer KEY or X-Api-Key: KEY",
                  {}, "invalid_api_key");
}

bool Body::append(const char* data, std::size_t size) {
  const std::size_t then = text.size() + size;
  const auto more = std::ptrdiff_t(std::max(then, kFree) - std::max(text.size(), kFree));
  if ((*share_ -= more) < 0) {
    *share_ += more;
    return false;
  }
  share_.get_deleter().taken += more;
  text.append(data, size);
  return true;
}

Body read_body(const httplib::Request& request, httplib::Response& response,
               const httplib::ContentReader& reader, BodyBudget& budget, std::size_t largest) {
  if (request.is_multipart_form_data()) {
    throw ApiError(415, "the body must be JSON, not multipart/form-data");
  }
  const ApiError too_large(413, cat("the body is larger than ", largest, " bytes"));
  if (request.get_header_value_u64("Content-Length") > largest) throw ApiError(too_large);
  Body body(budget);
  bool full = false;
  const bool whole = reader([&](const char* data, std::size_t size) {
    full = !body.append(data, size);
    return !full;
  });
  if (whole) return body;
  if (full) {
    throw ApiError(503, "too many large requests at the same time: try again later", {}, "busy");
  }
  if (response.status == 413) throw ApiError(too_large);
  if (response.status == 415) throw ApiError(415, "the body is compressed, which is not supported");
  throw ApiError(400, "the body could not be read to its end");
}

}  // namespace mrrope::serve
