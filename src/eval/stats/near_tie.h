// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mrrope::eval {

// Below this difference of the top two logits another order of additions may pick the other token:
// another batch size, another machine, or computing the prompt alone instead of sharing it.
constexpr double kTie = 0.01;

}  // namespace mrrope::eval
