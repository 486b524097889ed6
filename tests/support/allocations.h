// SPDX-License-Identifier: Apache-2.0
// How often this program has called operator new, and how often it may; allocations.cpp replaces
// it.
#pragma once

#include <cstdint>
#include <functional>

namespace mrrope::test {

std::int64_t allocations() noexcept;

// Calls `act` with no memory at all, then with one allocation, with two and so on until it ends
// without std::bad_alloc; returns how many that took. Other threads have all the memory they want.
std::int64_t run_short_of_memory(const std::function<void()>& act);

}  // namespace mrrope::test
