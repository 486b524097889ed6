// SPDX-License-Identifier: Apache-2.0
// What a model takes, before it is loaded.
#pragma once

#include <cstdint>

#include "engine/llama/local.h"

namespace mrrope::engine {

// What it takes to run this model, found without loading its weights.
struct MemoryPlan {
  std::uint64_t weights = 0;  // bytes
  std::uint64_t kv = 0;
  std::uint64_t compute = 0;  // estimated
  std::uint64_t available = 0;
  std::uint64_t total() const { return weights + kv + compute; }
};
MemoryPlan plan_memory(const Model& model, const LocalOptions& options);

// Throws Error (out_of_memory) with the figures and with what would fit.
void check_memory(const Model& model, const LocalOptions& options);

// Whether sliding-window layers keep every token.
bool keeps_windows_whole(const LocalOptions& options) noexcept;

}  // namespace mrrope::engine
