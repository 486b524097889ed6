// SPDX-License-Identifier: Apache-2.0
// An OpenAI-compatible server without a model, on loopback: tokens are bytes, the answer is a pure
// function of the prompt. It can misbehave in every way that servers do.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace httplib {
class Server;
struct Request;
struct Response;
}  // namespace httplib

namespace mrrope::test {

struct FakeServerOptions {
  // Each prompt meets one of the faults below before it is answered; which one depends on it alone.
  bool faulty = false;
  double stall = 2;          // seconds that a stalled request hangs
  bool lies = false;         // about usage, in every answer
  bool refuses_one = false;  // status 400 for one prompt in four
  bool tokenizer = true;
  int models = 1;
  std::int64_t context = 4096;
  std::string key{};   // asked for, where not empty
  double seconds = 0;  // that an answer takes
  int gate = 0;        // nothing is answered before this many were in flight at once
};

class FakeServer {
 public:
  explicit FakeServer(const FakeServerOptions& options = {});
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  int port() const noexcept { return port_; }
  std::string url() const;
  FakeServerOptions options;

  int answered() const noexcept { return answered_; }  // completions sent in full
  int most_at_once() const noexcept { return most_; }
  void wait_until_idle() const;
  std::set<std::string> faults() const;  // those that happened
  std::string last_body() const;         // of a completion

 private:
  void complete(const httplib::Request& request, httplib::Response& response, bool chat);
  bool misbehave(const std::string& prompt, httplib::Response& response);

  std::unique_ptr<httplib::Server> server_;
  int port_ = 0;
  std::thread thread_;
  std::atomic<int> answered_{0};
  std::atomic<int> under_way_{0};
  std::atomic<int> most_{0};
  mutable std::mutex mutex_;
  std::map<std::string, int> tries_;
  std::set<std::string> faults_;
  std::string last_body_;
};

}  // namespace mrrope::test
