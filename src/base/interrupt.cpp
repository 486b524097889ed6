// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

#include <atomic>

namespace mrrope {

namespace {

std::atomic<bool> g_interrupt = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

}  // namespace

void request_interrupt() noexcept { g_interrupt.store(true, std::memory_order_relaxed); }
bool interrupt_requested() noexcept { return g_interrupt.load(std::memory_order_relaxed); }
void clear_interrupt() noexcept { g_interrupt.store(false, std::memory_order_relaxed); }

}  // namespace mrrope
