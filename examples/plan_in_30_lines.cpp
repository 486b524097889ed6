// SPDX-License-Identifier: Apache-2.0
// From three numbers of a model to the angles of a sixteen times longer context.
#include <cstdio>

#include "mrrope/error.h"
#include "mrrope/plan.h"

int main() {
  const mrrope::Geometry llama2{.rotary_dim = 128, .base = 10000, .train_length = 4096};
  mrrope::Extension wish;
  wish.method = "pro";
  wish.scale = 16;
  try {
    const mrrope::Plan plan = mrrope::make_plan(llama2, wish);
    std::printf("pairs %d to %d are the middle, attention scale %.4f\n", plan.boundaries().low,
                plan.boundaries().high, plan.attention_scale());
    for (const int pair : {0, 33, 63}) {
      std::printf("pair %2d: divide theta by %.4f, %.6g radians per position\n", pair,
                  plan.factor()[pair], plan.theta()[pair]);
    }
  } catch (const mrrope::Error& e) {
    std::fprintf(stderr, "%s\n%s\n", e.what(), e.hint().c_str());
    return e.exit_code();
  }
}
