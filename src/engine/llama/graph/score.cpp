// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/llama/choose.h"

namespace mrrope::engine {

namespace {

// Elements per block: a fixed count lets the compiler turn the loops into vector code.
constexpr std::size_t kBlock = 64;

// e^x for x <= 0; below -87 it is e^-87, which is negligible against the e^0 of the largest logit.
// x = n ln 2 + r with |r| <= ln 2 / 2, where Taylor's polynomial of degree 6 is off by 1.2e-7.
inline float exp_not_above_zero(float x) {
  // Bits of negative floats grow with their size. An integer minimum, because a comparison of
  // floats makes the compiler branch instead of using vectors.
  constexpr auto kLeast = std::bit_cast<std::uint32_t>(-87.0F);
  const auto bits = std::bit_cast<std::uint32_t>(x);
  x = std::bit_cast<float>(bits < kLeast ? bits : kLeast);
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to the nearest integer
  const float shifted = x * 1.44269504088896341F + kRound;
  const float n = shifted - kRound;
  // ln 2 in two parts, the first short enough for n * part to be exact.
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.38888889e-3F;
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

// Integers in the order of the floats they come from, so that a maximum needs no comparison of
// floats. NaNs are above plus infinity or below minus infinity, by their sign.
inline std::int32_t order_of(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  return bits ^ ((bits >> 31) & 0x7FFFFFFF);
}

struct Peak {
  float largest;
  bool has_nan;
};

Peak find_peak(std::span<const float> x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::int32_t most = order_of(-kInfinity);
  std::int32_t least = order_of(kInfinity);
  const auto see = [&](float value) {
    const std::int32_t order = order_of(value);
    most = order > most ? order : most;
    least = order < least ? order : least;
  };
  std::size_t i = 0;
  for (; i + kBlock <= x.size(); i += kBlock) {
    const float* block = x.data() + i;
    for (std::size_t j = 0; j < kBlock; ++j) see(block[j]);
  }
  for (; i < x.size(); ++i) see(x[i]);
  return {std::bit_cast<float>(most ^ ((most >> 31) & 0x7FFFFFFF)),
          most > order_of(kInfinity) || least < order_of(-kInfinity)};
}

double sum_of_exponentials(std::span<const float> x, float largest) {
  // Four floats are added as floats, everything else in double, in as many lanes as keep the
  // additions independent of each other.
  constexpr std::size_t kLanes = kBlock / 4;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kBlock <= x.size(); i += kBlock) {
    const float* block = x.data() + i;
    float e[kBlock];
    for (std::size_t j = 0; j < kBlock; ++j) e[j] = exp_not_above_zero(block[j] - largest);
    for (std::size_t k = 0; k < kLanes; ++k) {
      lanes[k] += double((e[k] + e[k + kLanes]) + (e[k + 2 * kLanes] + e[k + 3 * kLanes]));
    }
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; i < x.size(); ++i) sum += double(exp_not_above_zero(x[i] - largest));
  return sum;
}

}  // namespace

double log_probability(std::span<const float> logits, std::size_t target) noexcept {
  const Peak peak = find_peak(logits);
  if (peak.has_nan || !std::isfinite(peak.largest)) return std::numeric_limits<double>::quiet_NaN();
  return double(logits[target]) - double(peak.largest) -
         std::log(sum_of_exponentials(logits, peak.largest));
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

}  // namespace mrrope::engine
