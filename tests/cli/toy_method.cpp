// SPDX-License-Identifier: Apache-2.0
// The command with one more method, which nothing but this file knows.
#include <algorithm>

#include "cli/run.h"
#include "core/methods.h"

namespace {

std::vector<double> toy(const mrrope::Request& r) {
  return std::vector<double>(std::size_t(pair_count(r.geometry)), r.scale * r.scale);
}

}  // namespace

int main(int argc, char** argv) {
  mrrope::register_method(
      {.info = {.name = "toy", .title = "toy", .equation = "S^2", .attn_coef = 0.1},
       .reach = mrrope::Reach::scale,
       .beta_fast = 32,
       .factors = toy});
  return mrrope::cli::run(argc, argv);
}
