// SPDX-License-Identifier: Apache-2.0
// The YaRN that comes nearest to a plan, in keys that stock llama.cpp reads from any GGUF: a factor
// and an original length. The betas it reads from few architectures only and has at 32 and 1
// elsewhere, so the ramp has one width and can be moved.
#pragma once

#include <cstdint>

#include "mrrope/plan.h"

namespace mrrope {

struct YarnFit {
  double scale = 1;                  // rope.scaling.factor
  std::int64_t original_length = 0;  // rope.scaling.original_context_length
  // The same ramp in turns of the model's own window.
  double beta_fast = 32;
  double beta_slow = 1;
  // |angle under the fit / angle under the plan - 1|, over all pairs.
  double largest_error = 0;
  double mean_error = 0;
  int worst_pair = 0;
};

// Of all scales and original lengths those with the least largest error. The plan must start from
// plain RoPE (no trained factors).
YarnFit fit_yarn(const Plan& plan);

}  // namespace mrrope
