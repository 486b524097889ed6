// SPDX-License-Identifier: Apache-2.0
#include "support/rotary_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "mrrope/error.h"
#include "mrrope/rotary.h"

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

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Elements are O(4); each operation rounds a double once or twice.
constexpr double kRounding = 1e-14;

class RotaryReference : public testing::TestWithParam<Pairing> {};
INSTANTIATE_TEST_SUITE_P(Pairings, RotaryReference,
                         testing::Values(Pairing::halves, Pairing::interleaved),
                         [](const auto& param) { return to_string(param.param); });

TEST_P(RotaryReference, TurnsPairsByTheirAngle) {
  const Plan plan = plan_of("pro", 8, GetParam());
  std::vector<double> x(128, 0);
  const bool halves = GetParam() == Pairing::halves;
  const int pair = 20;
  const int a = halves ? pair : 2 * pair;
  const int b = halves ? pair + 64 : 2 * pair + 1;
  x[a] = 1;
  rotate_reference(plan, 100, x);
  EXPECT_NEAR(x[a], plan.attention_scale() * std::cos(100 * plan.theta()[pair]), kRounding);
  EXPECT_NEAR(x[b], plan.attention_scale() * std::sin(100 * plan.theta()[pair]), kRounding);
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

TEST_P(RotaryReference, ScoresDependOnDistanceOnly) {
  const Plan plan = plan_of("uni", 8, GetParam());
  const auto score = [&](double m, double n) {
    std::vector<double> q = random_vector(128, 3);
    std::vector<double> k = random_vector(128, 4);
    rotate_reference(plan, m, q);
    rotate_reference(plan, n, k);
    return dot(q, k);
  };
  // theta itself is a rounded double: at position p its error turns pair 0 by p * 2^-53.
  EXPECT_NEAR(score(700, 200), score(131571, 131071), 1e-9);
  EXPECT_GT(std::abs(score(700, 200) - score(701, 200)), 1e-3);
}

TEST_P(RotaryReference, KeepsTheNormUpToTheAttentionScale) {
  const Plan plan = plan_of("pro", 8, GetParam());
  std::vector<double> x = random_vector(128, 5);
  const double before = dot(x, x);
  rotate_reference(plan, 131071, x);
  const double t = plan.attention_scale();
  EXPECT_NEAR(dot(x, x) / (before * t * t), 1, kRounding);
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
