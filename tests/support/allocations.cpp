// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
std::atomic<std::int64_t> count = 0;
thread_local std::int64_t left = kAll;

}  // namespace

std::int64_t mrrope::test::allocations() noexcept { return count; }

std::int64_t mrrope::test::run_short_of_memory(const std::function<void()>& act) {
  for (std::int64_t allowed = 0;; ++allowed) {
    left = allowed;
    try {
      act();
      left = kAll;
      return allowed;
    } catch (const std::bad_alloc&) {
      left = kAll;
    }
  }
}

void* operator new(std::size_t size) {
  ++count;
  if (left <= 0) throw std::bad_alloc();
  --left;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
