// SPDX-License-Identifier: Apache-2.0
#include "models/rotary_reference.h"

#include "mrrope/rotary.h"
#include "support/test.h"

namespace mrrope {
namespace {

constexpr double kPositions[] = {0, 1, 4095, 39001, 131071, 1e6, 16777217};

Plan plan_of(const char* method, double scale, Pairing pairing) {
  return make_plan({.rotary_dim = 128, .base = 1e4, .train_length = 4096, .pairing = pairing},
                   {.method = method, .scale = scale});
}

std::vector<double> random_vector(int size, unsigned seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  std::vector<double> x(size);
  for (double& v : x) v = normal(rng);
  return x;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

// Elements are O(4); each operation rounds a double once or twice.
constexpr double kRounding = 1e-14;

class RotaryReference : public testing::TestWithParam<Pairing> {};
INSTANTIATE_TEST_SUITE_P(Pairings, RotaryReference,
                         testing::Values(Pairing::halves, Pairing::interleaved),
                         [](const auto& param) { return to_string(param.param); });

// Of both elements of every pair, which makes it a rotation of any vector.
TEST_P(RotaryReference, TurnsPairsByTheirAngle) {
  const Plan plan = plan_of("pro", 8, GetParam());
  const bool halves = GetParam() == Pairing::halves;
  for (int pair = 0; pair < 64; ++pair) {
    const int a = halves ? pair : 2 * pair;
    const int b = halves ? pair + 64 : 2 * pair + 1;
    const double cosine = plan.attention_scale() * std::cos(100 * plan.theta()[pair]);
    const double sine = plan.attention_scale() * std::sin(100 * plan.theta()[pair]);
    std::vector<double> x(128, 0), y(128, 0);
    x[a] = y[b] = 1;
    rotate_reference(plan, 100, x);
    rotate_reference(plan, 100, y);
    EXPECT_NEAR(x[a], cosine, kRounding);
    EXPECT_NEAR(x[b], sine, kRounding);
    EXPECT_NEAR(y[a], -sine, kRounding);
    EXPECT_NEAR(y[b], cosine, kRounding);
  }
}

TEST_P(RotaryReference, UnrotateUndoesRotate) {
  const Plan plan = plan_of("pro", 8, GetParam());
  for (const double position : kPositions) {
    const std::vector<double> original = random_vector(160, 1);
    std::vector<double> x = original;
    rotate_reference(plan, position, x);
    if (position > 0) {
      EXPECT_GT(largest_difference(x, original), 0.1);
    }
    for (int i = 128; i < 160; ++i) EXPECT_EQ(x[i], original[i]);  // past rotary_dim
    unrotate_reference(plan, position, x);
    EXPECT_LT(largest_difference(x, original), kRounding) << position;
  }
}

TEST_P(RotaryReference, TurnEqualsUnrotateThenRotate) {
  const Plan a = plan_of("yarn", 4, GetParam());
  const Plan b = plan_of("pro", 16, GetParam());
  for (const double position : kPositions) {
    const std::vector<double> key = random_vector(128, 2);
    std::vector<double> turned = key;
    rotate_reference(a, position, turned);
    turn_reference(a, b, position, turned);
    std::vector<double> fresh = key;
    rotate_reference(b, position, fresh);
    // Two angles against one, each rounded to a long double, which has 64 bits on x86-64, 113 on
    // Arm.
    const double angles = double(3 * position * std::numeric_limits<long double>::epsilon());
    EXPECT_LT(largest_difference(turned, fresh), kRounding + angles) << position;
  }
}

TEST_P(RotaryReference, LongDoubleAgreesWithDouble) {
  const Plan plan = plan_of("pro", 8, GetParam());
  const std::vector<double> x = random_vector(128, 6);
  std::vector<double> narrow = x;
  std::vector<long double> wide(x.begin(), x.end());
  rotate_reference(plan, 39001, narrow);
  rotate_reference(plan, 39001, wide);
  for (int i = 0; i < 128; ++i) EXPECT_NEAR(double(wide[i]), narrow[i], kRounding);
}

TEST(RotaryReferenceErrors, RefusesShortVectorsAndMismatchedPlans) {
  const Plan plan = plan_of("pro", 8, Pairing::halves);
  std::vector<double> x(127);
  EXPECT_THROW(rotate_reference(plan, 1, std::span<double>(x)), Error);
  std::vector<double> y(128);
  EXPECT_THROW(
      turn_reference(plan, plan_of("pro", 8, Pairing::interleaved), 1, std::span<double>(y)),
      Error);
}

TEST(RotaryReferenceTrained, UsesTheModelsOwnAttentionScale) {
  Geometry g{.rotary_dim = 4, .base = 1e4, .train_length = 4096, .trained_attention_scale = 2};
  std::vector<double> x = {1, 0, 0, 0};
  rotate_reference(make_plan(g, {}), 0, std::span<double>(x));
  EXPECT_EQ(x[0], 2);
}

}  // namespace
}  // namespace mrrope
