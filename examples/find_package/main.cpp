// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "mrrope/error.h"
#include "mrrope/model.h"
#include "mrrope/plan.h"
#include "mrrope/rotary.h"

// The plan of a model file given on the command line, for 4 times its window.
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const mrrope::Model model = mrrope::read_model(argv[1]);
    mrrope::Extension wish;
    wish.method = "uni";
    wish.scale = 4;
    const mrrope::Plan plan = mrrope::make_plan(model.geometry, wish);
    // The kernels must link too.
    std::vector<float> head(std::size_t(model.geometry.rotary_dim), 1.0f);
    mrrope::Batch batch{.head_dim = model.geometry.rotary_dim, .tokens = 1};
    batch.keys = mrrope::in_place(head.data(), 1, {});
    rotate(mrrope::RotaryTable(plan, 0, 1), batch);
    std::printf("%s: last factor %g\n", model.architecture.c_str(), plan.factor().back());
  } catch (const mrrope::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return e.exit_code();
  }
}
