// SPDX-License-Identifier: Apache-2.0
#include "engine/score.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace mrrope {

namespace {

// Elements per block: a fixed count lets the compiler turn the loops into vector code, and a block
// is short enough for its sum of exponentials to be exact to float precision.
constexpr std::size_t kBlock = 64;

// e^x for -87 <= x <= 0; below that e^-87, which is nothing beside the e^0 of the largest logit.
// x = n ln 2 + r with |r| <= ln 2 / 2; Taylor's polynomial of degree 7 has an error of 5e-9 there.
inline float exp_not_above_zero(float x) {
  x = x > -87.0F ? x : -87.0F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to the nearest integer
  const float shifted = x * 1.44269504088896341F + kRound;
  const float n = shifted - kRound;
  // ln 2 in two parts, the first short enough for n * part to be exact.
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.98412698e-4F;
  p = p * r + 1.38888889e-3F;
  p = p * r + 8.33333333e-3F;
  p = p * r + 4.16666667e-2F;
  p = p * r + 1.66666667e-1F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const std::uint32_t exponent =
      (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRound) + 127U) << 23U;
  return p * std::bit_cast<float>(exponent);
}

struct Peak {
  float largest;
  bool has_nan;
};

Peak find_peak(std::span<const float> x) {
  float lanes[kBlock];
  std::uint32_t nans[kBlock];
  for (std::size_t j = 0; j < kBlock; ++j) {
    lanes[j] = -std::numeric_limits<float>::infinity();
    nans[j] = 0;
  }
  std::size_t i = 0;
  for (; i + kBlock <= x.size(); i += kBlock) {
    const float* block = x.data() + i;
    for (std::size_t j = 0; j < kBlock; ++j) {
      lanes[j] = block[j] > lanes[j] ? block[j] : lanes[j];
      nans[j] |= block[j] != block[j] ? 1U : 0U;
    }
  }
  Peak peak{-std::numeric_limits<float>::infinity(), false};
  for (; i < x.size(); ++i) {
    if (x[i] != x[i]) peak.has_nan = true;
    if (x[i] > peak.largest) peak.largest = x[i];
  }
  for (std::size_t j = 0; j < kBlock; ++j) {
    if (lanes[j] > peak.largest) peak.largest = lanes[j];
    if (nans[j] != 0) peak.has_nan = true;
  }
  return peak;
}

double sum_of_exponentials(std::span<const float> x, float largest) {
  // Eight partial sums of a block keep the additions independent of each other.
  constexpr std::size_t kLanes = 8;
  double sum = 0;
  std::size_t i = 0;
  for (; i + kBlock <= x.size(); i += kBlock) {
    const float* block = x.data() + i;
    float e[kBlock];
    for (std::size_t j = 0; j < kBlock; ++j) e[j] = exp_not_above_zero(block[j] - largest);
    float lanes[kLanes] = {};
    for (std::size_t j = 0; j < kBlock; j += kLanes) {
      for (std::size_t k = 0; k < kLanes; ++k) lanes[k] += e[j + k];
    }
    float total = 0;
    for (const float lane : lanes) total += lane;
    sum += static_cast<double>(total);
  }
  for (; i < x.size(); ++i) sum += static_cast<double>(exp_not_above_zero(x[i] - largest));
  return sum;
}

}  // namespace

double log_probability(std::span<const float> logits, std::size_t target) noexcept {
  const Peak peak = find_peak(logits);
  if (peak.has_nan || !std::isfinite(peak.largest)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return static_cast<double>(logits[target]) - static_cast<double>(peak.largest) -
         std::log(sum_of_exponentials(logits, peak.largest));
}

double log_probability_reference(std::span<const float> logits, std::size_t target) noexcept {
  double largest = -std::numeric_limits<double>::infinity();
  for (const float x : logits) {
    if (std::isnan(x)) return std::numeric_limits<double>::quiet_NaN();
    largest = std::max(largest, static_cast<double>(x));
  }
  if (!std::isfinite(largest)) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - largest);
  return static_cast<double>(logits[target]) - largest - std::log(sum);
}

TopTwo top_two(std::span<const float> logits) noexcept {
  const Peak peak = find_peak(logits);
  TopTwo result;
  if (logits.empty() || peak.has_nan) return result;
  result.valid = true;
  while (logits[result.best] != peak.largest) ++result.best;
  if (logits.size() == 1) return result;
  const Peak before = find_peak(logits.first(result.best));
  const Peak after = find_peak(logits.subspan(result.best + 1));
  result.gap = peak.largest - std::max(before.largest, after.largest);
  return result;
}

WorkerPool::WorkerPool(int threads) {
  for (int slot = 1; slot < threads; ++slot) {
    threads_.emplace_back([this, slot] { serve(static_cast<std::size_t>(slot)); });
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::work_on(std::size_t slot) {
  const std::size_t step = threads_.size() + 1;
  for (std::size_t i = slot; i < count_; i += step) (*work_)(i);
}

void WorkerPool::serve(std::size_t slot) {
  std::size_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    start_.wait(lock, [&] { return stopping_ || round_ != seen; });
    if (stopping_) return;
    seen = round_;
    lock.unlock();
    work_on(slot);
    lock.lock();
    if (--busy_ == 0) finish_.notify_one();
  }
}

void WorkerPool::run(std::size_t count, const std::function<void(std::size_t)>& work) {
  {
    const std::lock_guard lock(mutex_);
    count_ = count;
    work_ = &work;
    busy_ = threads_.size();
    ++round_;
  }
  start_.notify_all();
  work_on(0);
  std::unique_lock lock(mutex_);
  finish_.wait(lock, [&] { return busy_ == 0; });
}

}  // namespace mrrope
