// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/choose.h"
#include "models/log_probability_reference.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> logits(std::size_t count, double spread, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, spread);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(normal(random));
  return values;
}

TEST(LogProbability, AgreesWithTheReference) {
  for (const std::size_t count : {1U, 2U, 63U, 64U, 65U, 1000U, 8192U, 128256U}) {
    for (const double spread : {0.0, 0.1, 3.0, 30.0, 300.0}) {
      const std::vector<float> values = logits(count, spread, static_cast<unsigned>(count));
      for (const std::size_t target : {std::size_t{0}, count / 2, count - 1}) {
        // A float's rounding in every exponential, and none in the sum.
        EXPECT_NEAR(log_probability(values, target),
                    test::log_probability_reference(values, target), 3e-7 + 1e-9)
            << count << " " << spread << " " << target;
      }
    }
  }
}

TEST(LogProbability, SumsToOne) {
  const std::vector<float> values = logits(1000, 4, 5);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += std::exp(log_probability(values, i));
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST(LogProbability, ReportsNanAtAnyIndex) {
  for (const std::size_t at : {0U, 1U, 63U, 64U, 99U}) {
    std::vector<float> values = logits(100, 2, 1);
    values[at] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(log_probability(values, 50))) << at;
    EXPECT_TRUE(std::isnan(test::log_probability_reference(values, 50))) << at;
    EXPECT_FALSE(top_two(values).valid) << at;
  }
  std::vector<float> values = logits(100, 2, 1);
  values[70] = kInfinity;
  EXPECT_TRUE(std::isnan(log_probability(values, 3)));
}

TEST(LogProbability, AllowsImpossibleTokens) {
  std::vector<float> values = logits(100, 2, 1);
  values[7] = -kInfinity;
  EXPECT_EQ(log_probability(values, 7), -std::numeric_limits<double>::infinity());
  EXPECT_NEAR(log_probability(values, 8), test::log_probability_reference(values, 8), 3e-7);
  EXPECT_TRUE(top_two(values).valid);
}

TEST(TopTwo, FindsTheBestAndTheGap) {
  std::vector<float> values(200, -1.0F);
  values[150] = 3;
  values[20] = 2.5F;
  EXPECT_EQ(top_two(values).best, 150U);
  EXPECT_FLOAT_EQ(top_two(values).gap, 0.5F);
  values[20] = 3;
  EXPECT_EQ(top_two(values).best, 20U);
  EXPECT_EQ(top_two(values).gap, 0);
  EXPECT_EQ(top_two(std::vector<float>{1}).best, 0U);
  EXPECT_FALSE(top_two({}).valid);
}

}  // namespace
}  // namespace mrrope::engine
