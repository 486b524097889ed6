// SPDX-License-Identifier: Apache-2.0
// cpp-httplib's server with one more limit: a request must arrive within a time that grows with
// what has arrived, so that a client that sends a byte now and then holds no thread for long.
#pragma once

#include <httplib.h>

#include <condition_variable>
#include <mutex>

namespace mrrope {

class HttpServer final : public httplib::Server {
 private:
  bool process_and_close_socket(socket_t socket) override;
};

// A thread for each connection, up to a limit; further ones are closed. A pool would let a
// connection wait behind those that say nothing.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(std::size_t most) : most_(most) {}
  bool enqueue(std::function<void()> work) override;
  void shutdown() override;  // waits for all

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_ = 0;
};

}  // namespace mrrope
