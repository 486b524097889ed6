// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "export/gguf_export.h"

namespace mrrope::exporting {
namespace {

Geometry geometry() {
  Geometry g;
  g.rotary_dim = 128;
  g.base = 500000;
  g.train_length = 8192;
  return g;
}

Plan plan_of(const std::string& method, double scale, const Parameters& parameters = {}) {
  Extension extension{.method = method, .scale = scale};
  extension.parameters = parameters;
  return make_plan(geometry(), extension);
}

Parameters betas(double fast, double slow) {
  Parameters p;
  p.beta_fast = fast;
  p.beta_slow = slow;
  return p;
}

TEST(YarnFit, FindsYarnItself) {
  const YarnFit fit = fit_yarn(plan_of("yarn", 16));
  EXPECT_EQ(fit.scale, 16);
  EXPECT_EQ(fit.original_length, 8192);
  EXPECT_EQ(fit.largest_error, 0);
  EXPECT_EQ(fit.beta_fast, 32);
  EXPECT_EQ(fit.beta_slow, 1);
}

// Twice the turns at both ends is half the original length.
TEST(YarnFit, FindsAMovedRamp) {
  const YarnFit fit = fit_yarn(plan_of("yarn", 8, betas(64, 2)));
  EXPECT_LT(fit.largest_error, 1e-9);
  EXPECT_NEAR(fit.scale, 8, 1e-6);
}

TEST(YarnFit, ReportsItsError) {
  for (const char* method : {"pro", "uni", "regressive", "yarn-rotations", "llama3"}) {
    SCOPED_TRACE(method);
    const Plan plan = plan_of(method, 16);
    const YarnFit fit = fit_yarn(plan);
    // The errors again, from the YaRN that the fit names.
    const Plan yarn = plan_of("yarn", fit.scale, betas(fit.beta_fast, fit.beta_slow));
    double largest = 0;
    double mean = 0;
    for (std::size_t i = 0; i < plan.theta().size(); ++i) {
      const double error = std::abs(yarn.theta()[i] / plan.theta()[i] - 1);
      largest = std::max(largest, error);
      mean += error / double(plan.theta().size());
    }
    EXPECT_NEAR(fit.largest_error, largest, 1e-9);
    EXPECT_NEAR(fit.mean_error, mean, 1e-9);
    EXPECT_GT(largest, 1e-3);
    // No neighbour is better.
    for (const double scale : {fit.scale * 0.99, fit.scale * 1.01}) {
      const Plan other = plan_of("yarn", scale, betas(fit.beta_fast, fit.beta_slow));
      double worse = 0;
      for (std::size_t i = 0; i < plan.theta().size(); ++i) {
        worse = std::max(worse, std::abs(other.theta()[i] / plan.theta()[i] - 1));
      }
      EXPECT_GE(worse, largest - 1e-9);
    }
    // Nor the plain YaRN of the same scale.
    double plain = 0;
    const Plan same = plan_of("yarn", 16);
    for (std::size_t i = 0; i < plan.theta().size(); ++i) {
      plain = std::max(plain, std::abs(same.theta()[i] / plan.theta()[i] - 1));
    }
    EXPECT_LE(largest, plain + 1e-12);
  }
}

}  // namespace
}  // namespace mrrope::exporting
