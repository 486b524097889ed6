// SPDX-License-Identifier: Apache-2.0
// Against tests/golden/theory.json, which tools/make_theory_goldens.py computes on its own.
#include "theory/curves.h"

#include "support/test.h"

namespace mrrope::theory {
namespace {

nlohmann::json golden() {
  std::ifstream in(MRROPE_GOLDEN_DIR "/theory.json");
  return nlohmann::json::parse(in);
}

Geometry llama2() { return {.rotary_dim = 128, .base = 10000, .train_length = 4096}; }

Plan plan_of(const Geometry& g, const std::string& method, double scale) {
  Extension e{.method = method, .scale = scale};
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
        EXPECT_NEAR(all[m], c["cosine"][i].get<double>(), 1e-8);  // as curves.h states
        EXPECT_NEAR(middle[m], c["middle"][i].get<double>(), 1e-8);
        EXPECT_NEAR(estimate[m] / c["estimate"][i].get<double>(), 1, 1e-12);
      }
    }
    for (const auto& [position, values] : c["digits"].items()) {
      const std::vector<double> digits = digits_of(plan, std::stod(position));
      ASSERT_EQ(digits.size(), values.size());
      for (std::size_t j = 0; j < digits.size(); ++j) {
        const double off = std::abs(digits[j] - values[j].get<double>());
        EXPECT_LT(std::min(off, number_system(plan).radix[j] - off), 1e-8) << "digit " << j;
      }
    }
    const std::vector<double> cover =
        new_angles(plan, std::llround(c["scale"].get<double>() * double(g.train_length)));
    for (std::size_t j = 0; j < cover.size(); ++j) {
      EXPECT_NEAR(cover[j], c["fresh"][j].get<double>(), 1e-12);
    }
  }
  EXPECT_EQ(cases, 46);
  for (const auto& c : file["linear"]) {
    const std::vector<double> theta = trained_theta(
        {.rotary_dim = 2 * c["pairs"].get<int>(), .base = c["base"], .train_length = 4096});
    EXPECT_EQ(linear_range(position_estimate(theta, file["fit"]), file["bound"]).length,
              c["length"]);
  }
}

// Position 0 is all zeros; a plan without stretching is the paper's beta-radix.
TEST(Theory, DigitsOfThePlainSystem) {
  const Plan plan = plan_of(llama2(), "none", 1);
  const double beta = std::pow(10000, 1.0 / 64);
  EXPECT_EQ(digits_of(plan, 0), std::vector<double>(64, 0.0));
  for (const double radix : number_system(plan).radix) EXPECT_NEAR(radix, beta, 1e-12);
  EXPECT_EQ(range_growth(plan), 1);
  EXPECT_EQ(first_open_pair(plan, 4096), 46);  // the paper's boundary for LLaMA2
  EXPECT_ERROR(digits_of(plan, -1), usage, "-1");
  EXPECT_ERROR(digits_of(plan, std::nan("")), usage, "nan");
}

// With radix 10 the digits are those of ordinary numbers, and the paper's sum is the position.
TEST(Theory, TheSumOfDecimalDigitsIsThePosition) {
  const Plan plan = plan_of({.rotary_dim = 8, .base = 10000, .train_length = 4096}, "none", 1);
  EXPECT_NEAR(writable_positions(plan), 10000, 1e-8);
  const std::vector<double> typed = {4, 3, 2, 1};
  EXPECT_NEAR(digit_sum(plan, typed), 1234, 1e-9);
  EXPECT_EQ(positions_of(plan, typed), (std::vector<PositionRange>{{1234, 1234}}));
  const std::vector<double> last = {9, 9, 9, 9};
  EXPECT_EQ(positions_of(plan, last), (std::vector<PositionRange>{{9999, 9999}}));
  const std::vector<double> above = {4, 3, 2, 11};  // not 1 after a turn
  EXPECT_TRUE(positions_of(plan, above).empty());
}

TEST(Theory, ThePaperSumIsBiasedWhereRadicesAreFractions) {
  const Plan plan = plan_of(llama2(), "pro", 16);
  EXPECT_NEAR(writable_positions(plan), 160000, 1e-6);
  EXPECT_GT(digit_sum(plan, digits_of(plan, 1000)), 2000);
}

// Compared with trying every position.
TEST(Theory, PositionsComeBackFromTheirDigits) {
  const Geometry g{.rotary_dim = 16, .base = 500, .train_length = 64};
  for (const std::string method : {"none", "pi", "ntk", "yarn", "regressive", "uni", "pro"}) {
    const Plan plan = plan_of(g, method, method == "none" ? 1 : 4);
    const auto end = std::int64_t(std::ceil(writable_positions(plan) * (1 - 1e-12)));
    std::vector<std::vector<double>> all;
    for (std::int64_t m = 0; m < end; ++m) all.push_back(digits_of(plan, double(m)));
    for (std::int64_t m = 0; m < end; m += 7) {
      std::vector<PositionRange> same;
      for (std::int64_t other = 0; other < end; ++other) {
        if (all[std::size_t(other)] != all[std::size_t(m)]) continue;
        if (!same.empty() && same.back().second + 1 == other) {
          same.back().second = other;
        } else {
          same.push_back({other, other});
        }
      }
      EXPECT_EQ(positions_of(plan, all[std::size_t(m)]), same) << method << " " << m;
    }
  }
}

TEST(Theory, PositionsComeBackFromPrintedDigits) {
  for (const std::string method : {"yarn", "regressive", "uni", "pro"}) {
    const Plan plan = plan_of(llama2(), method, 16);
    for (const std::int64_t m : {0, 1, 1000, 65535, 131071, 159999}) {
      std::vector<double> printed = digits_of(plan, double(m));
      for (double& v : printed) v = std::round(v * 1000) / 1000;
      EXPECT_EQ(positions_of(plan, printed, 5.001e-4), (std::vector<PositionRange>{{m, m}}))
          << method;
    }
  }
}

TEST(Theory, NeighboursThatShareTheirDigitsComeBackAsARange) {
  const Plan plan = plan_of(llama2(), "pi", 16);
  const std::vector<PositionRange> ranges = positions_of(plan, digits_of(plan, 1000));
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_LT(ranges[0].first, ranges[0].second);
  const auto digits_at = [&](std::int64_t m) { return digits_of(plan, double(m)); };
  EXPECT_EQ(digits_at(ranges[0].first), digits_at(ranges[0].second));
  EXPECT_NE(digits_at(ranges[0].first - 1), digits_at(ranges[0].first));
  EXPECT_NE(digits_at(ranges[0].second + 1), digits_at(ranges[0].second));
}

TEST(Theory, RefusesDigitsThatNoPositionCanHave) {
  const Plan plan = plan_of(llama2(), "none", 1);
  const std::vector<double> few(63, 0.0);
  EXPECT_ERROR(positions_of(plan, few), usage, "63 digits given, and a position has 64");
  std::vector<double> values(64, 0.0);
  values[5] = 2;  // above its radix
  EXPECT_TRUE(positions_of(plan, values).empty());
  values[5] = -1;
  EXPECT_ERROR(positions_of(plan, values), usage, "digit 5 is -1");
  // Beyond what the digits can write: the slow ones have started again, and nothing fits.
  EXPECT_TRUE(positions_of(plan, digits_of(plan, 16385)).empty());
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

// All pairs make the dot product, and each is counted once.
TEST(Attention, ScoreIsThatOfThePairs) {
  std::vector<float> q(16);
  std::vector<float> k(16);
  double whole = 0;
  for (int i = 0; i < 16; ++i) {
    q[std::size_t(i)] = float(i % 5) - 1.5F;
    k[std::size_t(i)] = float(i % 7) * 0.5F - 1;
    whole += double(q[std::size_t(i)]) * k[std::size_t(i)];
  }
  for (const Pairing pairing : {Pairing::halves, Pairing::interleaved}) {
    const Geometry g{.rotary_dim = 16, .base = 10000, .train_length = 256, .pairing = pairing};
    EXPECT_NEAR(pair_score(q, k, 0, 3, g) + pair_score(q, k, 3, 8, g), whole, 1e-9);
    const std::size_t partner = pairing == Pairing::halves ? 8 : 1;
    EXPECT_NEAR(pair_score(q, k, 0, 1, g), double(q[0]) * k[0] + double(q[partner]) * k[partner],
                1e-9);
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
