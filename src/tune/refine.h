// SPDX-License-Identifier: Apache-2.0
// Local search without derivatives: NLopt's BOBYQA. Why this one: an evaluation costs a pass over
// long texts, so evaluations are what to save, and BOBYQA builds a quadratic model from 2n + 1 of
// them where simplex methods take several times as many; it keeps to bounds, steps of its own size
// along each axis, and draws no random numbers. It begins with steps of several stairs along the
// borders, so that the staircase looks smooth to it, and ends where a step is a fraction of that.
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace mrrope {

struct Box {
  std::vector<double> lower, upper, step;
};

// Calls f until it has converged, or f has said nothing. What f returns must be finite. The best is
// for f to remember. Throws Error (failed) if NLopt reports a failure of its own.
void refine(const Box& box, std::vector<double> start,
            const std::function<std::optional<double>(const std::vector<double>&)>& f);

}  // namespace mrrope
