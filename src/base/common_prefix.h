// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

namespace mrrope {

// How many elements two sequences have in common at their beginning.
template <typename A, typename B>
std::size_t common_prefix(const A& a, const B& b) {
  return std::size_t(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace mrrope
