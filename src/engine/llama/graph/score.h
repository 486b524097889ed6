// SPDX-License-Identifier: Apache-2.0
// Log-probabilities from logits, and a small pool of threads to compute many of them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace mrrope {

// ln softmax(logits)[target]. NaN if any logit is NaN or plus infinity; minus infinity is an
// ordinary logit of a token that cannot be. Exponentials in float (relative error below 3e-7), sums
// in double. Throws nothing; target must be inside the span.
double log_probability(std::span<const float> logits, std::size_t target) noexcept;

// The same in double throughout: slow, obvious, the judge of the other.
double log_probability_reference(std::span<const float> logits, std::size_t target) noexcept;

struct TopTwo {
  std::size_t best = 0;  // the lowest index among equals
  float gap = 0;         // its logit less the next one; 0 for a vocabulary of one
  bool valid = false;    // false: a NaN was among the logits
};
TopTwo top_two(std::span<const float> logits) noexcept;

// Runs the same function over indices on several threads. The caller's thread works too.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);  // at least 1
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Calls work(i) for every i below count; returns when all are done. work must not throw.
  void run(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  void serve(std::size_t slot);
  void work_on(std::size_t slot);

  std::mutex mutex_;
  std::condition_variable start_, finish_;
  std::size_t round_ = 0;
  std::size_t busy_ = 0;
  bool stopping_ = false;
  std::size_t count_ = 0;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::vector<std::thread> threads_;
};

}  // namespace mrrope
