// SPDX-License-Identifier: Apache-2.0
// More requests to a ChatRenderer than may wait, each of which would take a minute. They are ended
// by killing the workers.
#pragma once

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "engine/chat/chat.h"
#include "support/processes.h"

namespace mrrope::test {

class Crowd {
 public:
  static constexpr int kWorking = 3;
  static constexpr int kWaiting = 128;
  static constexpr int kTooMany = 5;

  // before: the children of this process before it had the renderer. All places are taken when this
  // returns.
  Crowd(engine::ChatRenderer& renderer, std::map<pid_t, char> before) : before_(std::move(before)) {
    for (int i = 0; i < kWorking + kWaiting + kTooMany; ++i) {
      threads_.emplace_back([&] { ask(renderer); });
    }
    while (refused < kTooMany) std::this_thread::yield();
  }
  ~Crowd() {
    gone = true;
    while (left < kWaiting) std::this_thread::yield();
    for (const auto& keeper : new_children(before_)) {
      for (const auto& worker : children_of(keeper.first)) ::kill(worker.first, SIGKILL);
    }
    for (std::thread& thread : threads_) thread.join();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  std::atomic<bool> gone = false;  // those that wait give up
  std::atomic<int> refused = 0, left = 0, failed = 0;

 private:
  void ask(engine::ChatRenderer& renderer) {
    engine::ChatInputs inputs;
    inputs.messages = R"([{"role": "user", "content": "Hi"}])";
    const ChatTemplate endless{
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "", "",
        false};
    try {
      renderer.prepare(endless, inputs, std::chrono::minutes(1), [&] { return gone.load(); });
    } catch (const engine::ChatBusy&) {
      ++refused;
    } catch (const Error& error) {
      ++(error.kind() == ErrorKind::interrupted ? left : failed);
    }
  }

  const std::map<pid_t, char> before_;
  std::vector<std::thread> threads_;
};

}  // namespace mrrope::test
