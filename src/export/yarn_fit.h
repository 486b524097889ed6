// SPDX-License-Identifier: Apache-2.0
// The YaRN nearest to a plan, in keys that stock llama.cpp reads from any GGUF: a factor and an
// original length. It reads the betas only for a few architectures and uses 32 and 1 for the
// others, so the ramp has a fixed width and can only be moved.
#pragma once

#include <cstdint>

#include "mrrope/plan.h"

namespace mrrope::exporting {

struct YarnFit {
  double scale = 1;                  // rope.scaling.factor
  std::int64_t original_length = 0;  // rope.scaling.original_context_length
  // The same ramp, in turns within the model's own window.
  double beta_fast = 32;
  double beta_slow = 1;
  // |angle under the fit / angle under the plan - 1|, over all pairs.
  double largest_error = 0;
  double mean_error = 0;
  int worst_pair = 0;
};

// The scale and original length with the smallest largest error. The plan must start from plain
// RoPE (no trained factors).
YarnFit fit_yarn(const Plan& plan);

}  // namespace mrrope::exporting
