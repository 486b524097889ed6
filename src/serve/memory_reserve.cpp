// SPDX-License-Identifier: Apache-2.0
#include "serve/memory_reserve.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <new>

namespace mrrope::serve {

namespace {

constexpr std::size_t kChunk = std::size_t{4} << 20;
std::array<std::atomic<void*>, 8> chunks = {};
std::atomic<bool> installed = false;

void spend() {
  const std::size_t first = std::uncaught_exceptions() > 0 ? 0 : chunks.size() / 2;
  for (std::size_t i = first; i < chunks.size(); ++i) {
    if (void* const chunk = chunks[i].exchange(nullptr)) {
      ::munmap(chunk, kChunk);
      return;  // `new` tries again
    }
  }
  throw std::bad_alloc();
}

}  // namespace

void install_memory_reserve() {
  installed = true;
  fill_memory_reserve();
  std::set_new_handler(spend);
}

bool fill_memory_reserve() {
  if (!installed) return true;
  for (std::atomic<void*>& place : chunks) {
    if (place.load() != nullptr) continue;
    void* const chunk = ::mmap(nullptr, kChunk, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED) return false;
    void* none = nullptr;
    if (!place.compare_exchange_strong(none, chunk)) ::munmap(chunk, kChunk);
  }
  return true;
}

}  // namespace mrrope::serve
