// SPDX-License-Identifier: Apache-2.0
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/text.h"
#include "mrrope/error.h"
#include "mrrope/rotary.h"

namespace mrrope {

struct Workers::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable done;
  void (*part)(void* context, int index) = nullptr;
  void* context = nullptr;
  int next = 0;  // the first part that has not been taken
  int parts = 0;
  int running = 0;  // parts taken and not finished
  bool stop = false;
  std::vector<std::thread> threads;

  // Takes parts until none is left.
  void work(std::unique_lock<std::mutex>& lock) {
    while (next < parts) {
      const int index = next++;
      ++running;
      lock.unlock();
      part(context, index);
      lock.lock();
      --running;
    }
  }

  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return stop || next < parts; });
      if (stop) return;
      work(lock);
      if (running == 0) done.notify_one();
    }
  }

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
};

Workers::Workers(int threads) {
  if (threads < 1 || threads > 1024) {
    refuse(cat(threads, " threads"), "give 1 to 1024");
  }
  state_ = std::make_unique<State>();
  try {
    for (int i = 1; i < threads; ++i) {
      state_->threads.emplace_back([state = state_.get()] { state->serve(); });
    }
  } catch (const std::system_error& e) {
    throw Error(ErrorKind::failed,
                cat("thread ", state_->threads.size() + 2, " did not start: ", e.what()),
                "use fewer threads");
  }
}

Workers::~Workers() = default;

int Workers::threads() const noexcept { return int(state_->threads.size()) + 1; }

void Workers::run(void (*part)(void* context, int index), void* context, int parts) noexcept {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  s.part = part;
  s.context = context;
  s.next = 0;
  s.parts = parts;
  if (parts > 1) s.wake.notify_all();
  s.work(lock);
  s.done.wait(lock, [&] { return s.running == 0; });
  s.parts = 0;
}

}  // namespace mrrope
