// SPDX-License-Identifier: Apache-2.0
#include "serve/http/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "base/text.h"

namespace mrrope::serve {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kIdleTimeout{5000};  // between two requests of one connection
constexpr milliseconds kPoll{250};          // how often an idle connection checks for the end
constexpr std::size_t kSpareThreads = 64;  // threads that answer clients for which there is no room

std::string busy_response() {
  const std::string body = R"({"error":{"message":"all connections are in use: try again later",)"
                           R"("type":"server_error","param":null,"code":"busy"}})";
  return cat("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n",
             "Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}

}  // namespace

thread_local HttpServer::Open* HttpServer::current_ = nullptr;
thread_local HttpServer* HttpServer::serving_ = nullptr;

HttpServer::HttpServer(std::size_t connections) : max_(connections) {
  new_task_queue = [connections] { return new ConnectionThreads(connections + kSpareThreads); };
  // The library announces the end of a connection in every refusal, also of a request that it could
  // not read, and then goes on reading.
  set_post_routing_handler([](const httplib::Request&, httplib::Response& response) {
    if (current_ != nullptr && response.get_header_value("Connection") == "close") {
      current_->close = true;
    }
  });
}

std::string HttpServer::bound_address() const {
  const socket_t socket = svr_sock_;
  return socket == INVALID_SOCKET ? std::string() : local_address(socket).ip;
}

// A dropped connection's thread finds its socket closed, and ends. Needs the lock.
void HttpServer::drop(Open& open) {
  open.dropped = true;
  ::shutdown(open.connection.socket(), SHUT_RDWR);
}

bool HttpServer::admit(Open& open) {
  const std::lock_guard lock(mutex_);
  std::size_t served = 0;
  Open* oldest = nullptr;
  for (Open* other : open_) {
    if (other->dropped) continue;
    ++served;
    if (other->waiting && (oldest == nullptr || other->since < oldest->since)) oldest = other;
  }
  if (served >= max_) {
    if (oldest == nullptr) return false;
    drop(*oldest);
  }
  open_.insert(&open);
  return true;
}

void HttpServer::leave(Open& open) {
  const std::lock_guard lock(mutex_);
  open_.erase(&open);
  left_.notify_all();
}

void HttpServer::set_waiting(Open& open, bool waiting) {
  const std::lock_guard lock(mutex_);
  open.waiting = waiting;
  if (waiting) open.since = Connection::Clock::now();
}

void HttpServer::close_connections(Connection::Clock::time_point until) {
  std::unique_lock lock(mutex_);
  while (!open_.empty()) {
    const bool late = Connection::Clock::now() >= until;
    for (Open* open : open_) {
      if (!open->dropped && (open->waiting || late)) drop(*open);
    }
    left_.wait_for(lock, kPoll);
  }
}

void HttpServer::request_is_complete() {
  if (current_ != nullptr) serving_->set_waiting(*current_, false);
}

bool HttpServer::client_is_half_closed() {
  return current_ != nullptr && current_->connection.half_closed();
}

bool HttpServer::client_is_gone(const httplib::Request& request) {
  if (current_ == nullptr) return false;
  Connection& connection = current_->connection;
  if (!connection.is_peer_alive()) return true;
  if (connection.half_closed() && request.version != "HTTP/1.0") connection.probe();
  return false;
}

bool HttpServer::process_and_close_socket(socket_t socket) {
  Open open(socket, shutting_down_);
  Connection& connection = open.connection;
  if (!admit(open)) {
    const std::string refusal = busy_response();
    connection.write(refusal.data(), refusal.size());
    connection.close_gently();
    return false;
  }
  current_ = &open;
  serving_ = this;
  const SocketAddress remote = remote_address(socket);
  const SocketAddress local = local_address(socket);
  const bool fine = serve_guarded([&] {
    bool good = true;
    for (std::size_t left = keep_alive_max_count_; left > 0 && good; --left) {
      set_waiting(open, true);
      const auto until = Connection::Clock::now() + kIdleTimeout;
      while (!connection.request_begins(kPoll)) {
        if (svr_sock_ == INVALID_SOCKET || Connection::Clock::now() >= until) return good;
      }
      connection.restart();
      bool closed = false;
      good = process_request(connection, remote.ip, remote.port, local.ip, local.port, left == 1,
                             closed, nullptr);
      if (closed || open.close) break;
    }
    return good;
  });
  current_ = nullptr;
  serving_ = nullptr;
  leave(open);
  connection.close_gently();
  return fine;
}

bool ConnectionThreads::enqueue(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (running_ >= max_) return false;
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

}  // namespace mrrope::serve
