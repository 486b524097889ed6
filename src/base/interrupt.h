// SPDX-License-Identifier: Apache-2.0
// The request to stop, set from a signal handler. Long computations check it between batches.
#pragma once

#include <atomic>

namespace mrrope {

inline std::atomic<bool> g_interrupt = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

inline void request_interrupt() noexcept { g_interrupt.store(true, std::memory_order_relaxed); }
inline bool interrupt_requested() noexcept { return g_interrupt.load(std::memory_order_relaxed); }
inline void clear_interrupt() noexcept { g_interrupt.store(false, std::memory_order_relaxed); }

}  // namespace mrrope
