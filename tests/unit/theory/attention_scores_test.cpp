// SPDX-License-Identifier: Apache-2.0
#include "mrrope/rotary.h"
#include "support/rotary_reference.h"
#include "support/test.h"
#include "theory/curves.h"

namespace mrrope::theory {
namespace {

// Rotating both and multiplying is the same as turning their product by the distance.
TEST(Attention, ScoreIsThatOfTheRotatedVectors) {
  for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
    const Geometry g{.rotary_dim = 16, .base = 10000, .train_length = 256, .pairing = pairing};
    const Plan plan = make_plan(g, Extension{});
    std::vector<float> q(16);
    std::vector<float> k(16);
    for (int i = 0; i < 16; ++i) {
      q[std::size_t(i)] = float(i % 5) - 1.5F;
      k[std::size_t(i)] = float(i % 7) * 0.5F - 1;
    }
    std::vector<double> rq(q.begin(), q.end());
    std::vector<double> rk(k.begin(), k.end());
    rotate_reference(plan, 300, std::span<double>(rq));
    rotate_reference(plan, 77, std::span<double>(rk));
    double expected = 0;
    for (std::size_t i = 0; i < 16; ++i) expected += rq[i] * rk[i];
    EXPECT_NEAR(score_at(pair_product(q, k, 8, pairing), angles_at(plan.theta(), 0, 8, 223)),
                expected, 1e-9);
  }
}

TEST(Attention, KolmogorovSmirnov) {
  EXPECT_EQ(kolmogorov_smirnov({1, 2, 3}, {1, 2, 3}), 0);
  EXPECT_EQ(kolmogorov_smirnov({1, 2}, {3, 4}), 1);
  EXPECT_DOUBLE_EQ(kolmogorov_smirnov({1, 2, 3, 4}, {3, 4, 5, 6}), 0.5);
  EXPECT_EQ(kolmogorov_smirnov({}, {1}), 1);
}

TEST(Attention, FallsUntilItRises) {
  const std::vector<double> mean = {5, 4, 3, 3.1, 2, 4, 1};
  EXPECT_EQ(falling_until(mean, std::vector<double>(7, 0.2)), 4u);
  EXPECT_EQ(falling_until(mean, std::vector<double>(7, 0.0)), 2u);
  EXPECT_EQ(falling_until({}, {}), 0u);
}

}  // namespace
}  // namespace mrrope::theory
