// SPDX-License-Identifier: Apache-2.0
// The command with one more method and one more parameter, which nothing but this file knows.
#include <cmath>

#include "cli/run.h"
#include "core/methods.h"

namespace {

std::vector<double> toy(const mrrope::Request& r) {
  const auto given = r.parameters.others.find("toy_exponent");
  const double exponent = given == r.parameters.others.end() ? 2 : given->second;
  return std::vector<double>(std::size_t(pair_count(r.geometry)), std::pow(r.scale, exponent));
}

}  // namespace

int main(int argc, char** argv) {
  mrrope::register_method(
      {.info = {.name = "toy", .title = "toy", .attn_coef = 0.1, .own = "toy_exponent"},
       .reach = mrrope::Reach::scale,
       .beta_fast = 32,
       .factors = toy});
  mrrope::register_parameter({.name = "toy_exponent",
                              .value = nullptr,
                              .list = nullptr,
                              .use = mrrope::Use::own,
                              .unit = mrrope::Unit::number,
                              .min = 1,
                              .max = 8,
                              .placeholder = "E",
                              .help = "toy: the exponent",
                              .hint = "2 is the default"});
  return mrrope::cli::run(argc, argv);
}
