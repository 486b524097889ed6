// SPDX-License-Identifier: Apache-2.0
// Against tests/golden/theory.json, which tools/make_theory_goldens.py computes on its own.
#include "mrrope/theory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "mrrope/error.h"
#include "support/expect_error.h"

namespace mrrope {
namespace {

nlohmann::json golden() {
  std::ifstream in(MRROPE_GOLDEN_DIR "/theory.json");
  return nlohmann::json::parse(in);
}

Geometry llama2() { return {.rotary_dim = 128, .base = 10000, .train_length = 4096}; }

Plan plan_of(const Geometry& g, const std::string& method, double scale) {
  Extension e;
  e.method = method;
  e.scale = scale;
  return make_plan(g, e);
}

std::vector<double> middle_of(const Plan& plan) {
  const auto [low, high] = plan.boundaries();
  return {plan.theta().begin() + low, plan.theta().begin() + high};
}

TEST(Theory, AgreesWithTheGenerator) {
  const nlohmann::json file = golden();
  std::map<std::string, Geometry> known;
  for (const auto& g : file["geometries"]) {
    known[g["name"]] = {
        .rotary_dim = g["rotary_dim"], .base = g["base"], .train_length = g["train_length"]};
  }
  const auto positions = file["positions"].get<std::vector<std::int64_t>>();
  const std::int64_t longest = positions.back() + 1;
  int cases = 0;
  for (const auto& c : file["cases"]) {
    const Geometry g = known.at(c["geometry"]);
    const Plan plan = plan_of(g, c["method"], c["scale"]);
    SCOPED_TRACE(c["geometry"].get<std::string>() + " " + c["method"].get<std::string>() + " " +
                 c["scale"].dump());
    EXPECT_EQ(first_open_digit(plan, g.train_length), c["open_digit"]);
    EXPECT_EQ(first_open_pair(plan, g.train_length), c["open_pair"]);
    EXPECT_NEAR(range_growth(plan) / c["growth"].get<double>(), 1, 1e-13);
    EXPECT_EQ(colliding_positions(plan, file["collisions"]), c["collisions"]);
    const auto negative = first_negative(plan.theta(), file["limit"]);
    EXPECT_EQ(negative ? nlohmann::json(*negative) : nlohmann::json(), c["negative"]);
    const Oscillation o = oscillation_of(cosine_sum(middle_of(plan), file["curve"]));
    EXPECT_NEAR(o.variation / c["variation"].get<double>(), 1, 1e-10);
    EXPECT_NEAR(o.spread / c["spread"].get<double>(), 1, 1e-10);
    if (cases++ % 20 == 0) {  // a million positions each: some will do
      const std::vector<double> all = cosine_sum(plan.theta(), longest);
      const std::vector<double> middle = cosine_sum(middle_of(plan), longest);
      const std::vector<double> estimate = position_estimate(plan.theta(), longest);
      for (std::size_t i = 0; i < positions.size(); ++i) {
        const auto m = std::size_t(positions[i]);
        EXPECT_NEAR(all[m], c["cosine"][i].get<double>(), 1e-8);  // as theory.h states
        EXPECT_NEAR(middle[m], c["middle"][i].get<double>(), 1e-8);
        EXPECT_NEAR(estimate[m] / c["estimate"][i].get<double>(), 1, 1e-12);
      }
    }
    for (const auto& [position, values] : c["digits"].items()) {
      const std::vector<Digit> digits = digits_of(plan, std::stod(position));
      ASSERT_EQ(digits.size(), values.size());
      for (std::size_t j = 0; j < digits.size(); ++j) {
        const double off = std::abs(digits[j].value - values[j].get<double>());
        EXPECT_LT(std::min(off, digits[j].radix - off), 1e-8) << "digit " << j;
      }
    }
    const std::vector<AngleCover> cover =
        angle_cover(plan, std::llround(c["scale"].get<double>() * double(g.train_length)));
    for (std::size_t j = 0; j < cover.size(); ++j) {
      EXPECT_NEAR(cover[j].fresh, c["fresh"][j].get<double>(), 1e-12);
    }
  }
  EXPECT_EQ(cases, 40);
  for (const auto& c : file["linear"]) {
    const std::vector<double> theta = trained_theta(
        {.rotary_dim = 2 * c["pairs"].get<int>(), .base = c["base"], .train_length = 4096});
    EXPECT_EQ(linear_range(position_estimate(theta, file["fit"]), file["bound"]).length,
              c["length"]);
  }
}

TEST(Theory, AMillionPositionsTakeWellUnderASecond) {
  const Plan plan = plan_of(llama2(), "pro", 16);
  const std::clock_t start = std::clock();  // of the processor: others may be busy
  const std::vector<double> sum = cosine_sum(plan.theta(), 1000000);
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(sum.size(), 1000000u);
#ifdef NDEBUG
  EXPECT_LT(seconds, 0.8);
#endif
  RecordProperty("seconds", std::to_string(seconds));
}

// Position 0 is all zeros; a plan without stretching is the paper's beta-radix.
TEST(Theory, DigitsOfThePlainSystem) {
  const Plan plan = plan_of(llama2(), "none", 1);
  const double beta = std::pow(10000, 1.0 / 64);
  for (const Digit& d : digits_of(plan, 0)) {
    EXPECT_EQ(d.value, 0);
    EXPECT_NEAR(d.radix, beta, 1e-12);
  }
  EXPECT_EQ(range_growth(plan), 1);
  EXPECT_EQ(first_open_pair(plan, 4096), 46);  // the paper's boundary for LLaMA2
  EXPECT_ERROR(digits_of(plan, -1), usage, "-1");
  EXPECT_ERROR(digits_of(plan, std::nan("")), usage, "nan");
}

TEST(Theory, OnlyPiLosesPositions) {
  EXPECT_EQ(colliding_positions(plan_of(llama2(), "pro", 16), 4096), 0);
  EXPECT_GT(colliding_positions(plan_of(llama2(), "pi", 16), 4096), 2500);
}

TEST(Theory, SmallestScaleReaches) {
  Extension e;
  e.method = "pro";
  const auto scale = smallest_scale(llama2(), e, 16384);
  ASSERT_TRUE(scale);
  e.scale = *scale;
  EXPECT_FALSE(first_negative(make_plan(llama2(), e).theta(), 16384));
  e.scale = *scale / 1.00001;
  EXPECT_TRUE(first_negative(make_plan(llama2(), e).theta(), 16384));
  EXPECT_FALSE(smallest_scale(llama2(), e, 1 << 20, 2));
  EXPECT_EQ(smallest_scale(llama2(), e, 100), 1);
}

TEST(Theory, SmallestBaseReaches) {
  Geometry g = llama2();
  const auto base = smallest_base(g, 4096);
  ASSERT_TRUE(base);
  g.base = *base;
  EXPECT_FALSE(first_negative(trained_theta(g), 4096));
}

TEST(Theory, EmptyAndOversizedCurves) {
  const std::vector<double> none;
  EXPECT_EQ(oscillation_of(none).variation, 0);
  EXPECT_EQ(linear_range(none, 0.1).length, 0);
  const std::vector<double> theta = {1.0};
  EXPECT_ERROR(cosine_sum(theta, 0), usage, "0 positions");
  EXPECT_ERROR(position_estimate(theta, std::int64_t{1} << 40), usage, "1099511627776");
  EXPECT_ERROR(linear_range(theta, 0), usage, "0");
  EXPECT_ERROR(linear_range(theta, 1), usage, "1");
}

}  // namespace
}  // namespace mrrope
