// SPDX-License-Identifier: Apache-2.0
#include "eval/results/result_table.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Mean, ByHand) {
  const std::vector<double> v = {1, 2, 3, 6};  // deviations -2 -1 0 3: squares 14, /3 /4
  const Estimate e = mean(v);
  EXPECT_DOUBLE_EQ(e.value, 3);
  EXPECT_DOUBLE_EQ(e.error, std::sqrt(14.0 / 12.0));
  EXPECT_EQ(e.n, 4u);
}

TEST(Mean, IsNanWithoutEnoughValues) {
  EXPECT_TRUE(std::isnan(mean({}).value));
  const std::vector<double> one = {5};
  EXPECT_EQ(mean(one).value, 5);
  EXPECT_TRUE(std::isnan(mean(one).error));
}

TEST(Exponential, DeltaMethod) {
  const Estimate e = exponential({std::log(4.0), 0.05, 7});
  EXPECT_NEAR(e.value, 4, 1e-12);
  EXPECT_NEAR(e.error, 0.2, 1e-12);
  EXPECT_EQ(e.n, 7u);
}

// Quantiles of any printed t table.
TEST(Student, TableValues) {
  EXPECT_NEAR(student_two_sided(12.706, 1), 0.05, 1e-5);
  EXPECT_NEAR(student_two_sided(4.303, 2), 0.05, 1e-5);
  EXPECT_NEAR(student_two_sided(2.262, 9), 0.05, 1e-4);
  EXPECT_NEAR(student_two_sided(3.250, 9), 0.01, 1e-5);
  EXPECT_NEAR(student_two_sided(1.960, 1e6), 0.05, 1e-4);
  EXPECT_DOUBLE_EQ(student_two_sided(0, 5), 1);
  // One degree of freedom is the Cauchy distribution.
  for (const double t : {0.1, 1.0, 3.0, 100.0}) {
    EXPECT_NEAR(student_two_sided(t, 1), 1 - 2 * std::atan(t) / M_PI, 1e-12);
    EXPECT_NEAR(student_two_sided(-t, 2), 1 - t / std::sqrt(2 + t * t), 1e-12);
  }
}

TEST(Paired, ByHand) {
  const std::vector<double> a = {1.1, 2.3, 3.2};
  const std::vector<double> b = {1.0, 2.0, 3.0};  // differences .1 .3 .2: mean .2, sd .1
  const PairedDifference d = paired(a, b);
  EXPECT_NEAR(d.mean_difference.value, 0.2, 1e-12);
  EXPECT_NEAR(d.mean_difference.error, 0.1 / std::sqrt(3.0), 1e-12);
  const double t = 0.2 / (0.1 / std::sqrt(3.0));
  EXPECT_NEAR(d.p, 1 - t / std::sqrt(2 + t * t), 1e-9);
  EXPECT_NEAR(d.percent().value, 100 * (std::exp(0.2) - 1), 1e-9);
}

TEST(Paired, EdgeCases) {
  const std::vector<double> a = {1, 2};
  EXPECT_EQ(paired(a, a).p, 1);
  const std::vector<double> b = {2, 3};
  EXPECT_EQ(paired(b, a).p, 0.5);  // signs at random agree in half of all cases
  const std::vector<double> found(5, 1.0), lost(5, 0.0);
  EXPECT_EQ(paired(found, lost).p, 0.0625);
  const std::vector<double> one = {1};
  EXPECT_TRUE(std::isnan(paired(one, one).p));
}

TEST(Holm, ByHand) {
  const std::vector<double> p = {0.01, kNan, 0.04, 0.03};
  const std::vector<double> c = holm(p);
  EXPECT_DOUBLE_EQ(c[0], 0.03);
  EXPECT_TRUE(std::isnan(c[1]));
  EXPECT_DOUBLE_EQ(c[3], 0.06);
  EXPECT_DOUBLE_EQ(c[2], 0.06);  // never below a smaller one
}

}  // namespace
}  // namespace mrrope::eval
