// SPDX-License-Identifier: Apache-2.0
// Local search without derivatives: NLopt's BOBYQA. An evaluation costs a pass over long texts, so
// the fewer the better: BOBYQA builds a quadratic model from 2n + 1 of them, where simplex methods
// need several times as many. It also respects bounds, takes a step size for each axis and draws no
// random numbers. Its first steps cross several stairs along the boundaries, so that the staircase
// looks smooth; it ends when a step is a fraction of that.
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace mrrope::tune {

struct Box {
  std::vector<double> lower, upper, step;
};

// Calls f until the search converges or f returns nullopt. Values must be finite. f keeps track of
// the best. Throws Error (failed) if NLopt reports a failure of its own.
void refine(const Box& box, std::vector<double> start,
            const std::function<std::optional<double>(const std::vector<double>&)>& f);

}  // namespace mrrope::tune
