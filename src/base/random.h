// SPDX-License-Identifier: Apache-2.0
// Random choices that repeat on every machine (those of <random> differ between libraries).
#pragma once

#include <cstdint>

namespace mrrope {

// splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // 0 .. n-1, n > 0, without bias.
  std::uint64_t below(std::uint64_t n) {
    const std::uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    std::uint64_t value = next();
    while (value >= limit) value = next();
    return value % n;
  }

 private:
  std::uint64_t state_;
};

}  // namespace mrrope
