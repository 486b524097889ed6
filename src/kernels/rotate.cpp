// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/text.h"
#include "kernels/rotary_simd.h"
#include "mrrope/rotary.h"

namespace mrrope {

namespace {

RotaryWork checked(const RotaryTable& table, const Batch& batch) {
  check_batch(batch, 2 * table.pairs());
  check_positions(batch, table.first(), table.end());
  // The rows hold the scale; the inverse divides by it, and once more for the rotation it undoes.
  const double gain = batch.inverse ? 1 / (table.scale() * table.scale()) : 1;
  return {&table, &batch, float(gain), float(batch.inverse ? -gain : gain)};
}

std::int64_t head_count(const Batch& batch) {
  return batch.sequences * batch.tokens * (batch.queries.count + batch.keys.count);
}

void rotate_share(const RotaryWork& work, std::int64_t heads, int part, int parts) {
  // Products of 2^60 heads and 2^20 parts would not fit.
  const std::int64_t each = heads / parts;
  const std::int64_t rest = heads % parts;
  const std::int64_t begin = part * each + std::min<std::int64_t>(part, rest);
  rotate_heads(work, begin, begin + each + (part < rest ? 1 : 0));
}

constexpr std::int64_t kLeastBytes = 1 << 16;  // less work is done before another thread wakes up
constexpr int kPartsPerThread = 4;             // so that a thread that was held up does less

}  // namespace

void rotate(const RotaryTable& table, const Batch& batch) {
  const RotaryWork work = checked(table, batch);
  rotate_heads(work, 0, head_count(batch));
}

void rotate(const RotaryTable& table, const Batch& batch, Workers& workers) {
  const RotaryWork work = checked(table, batch);
  const std::int64_t heads = head_count(batch);
  const std::int64_t head_bytes = batch.head_dim * std::int64_t(bytes_of(batch.element));
  const std::int64_t most = std::int64_t(workers.threads()) * kPartsPerThread;
  const std::int64_t worth = heads / std::max<std::int64_t>(1, kLeastBytes / head_bytes);
  const int parts = workers.threads() == 1 ? 1 : int(std::clamp<std::int64_t>(worth, 1, most));
  workers.run(parts, [&](int part) { rotate_share(work, heads, part, parts); });
}

void rotate_part(const RotaryTable& table, const Batch& batch, int part, int parts) {
  if (parts < 1 || part < 0 || part >= parts) {
    refuse(cat("part ", part, " of ", parts), "parts count from 0 to parts - 1");
  }
  const RotaryWork work = checked(table, batch);
  rotate_share(work, head_count(batch), part, parts);
}

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
  refuse_if(threads < 1 || threads > 1024, cat(threads, " threads"), "give 1 to 1024");
  state_ = std::make_unique<State>();
  try {
    for (int i = 1; i < threads; ++i) {
      state_->threads.emplace_back([state = state_.get()] { state->serve(); });
    }
  } catch (const std::system_error& e) {
    fail(cat("thread ", state_->threads.size() + 2, " did not start: ", e.what()),
         "use fewer threads");
  }
}

Workers::~Workers() = default;

int Workers::threads() const noexcept { return int(state_->threads.size()) + 1; }

void Workers::run_all(int parts, void* context, void (*part)(void* context, int index)) noexcept {
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
