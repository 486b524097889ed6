// SPDX-License-Identifier: Apache-2.0
#include "mrrope/plan.h"

#include <cctype>

#include "core/methods.h"
#include "support/test.h"

namespace mrrope {
namespace {

const Geometry kLlama2{.rotary_dim = 128, .base = 1e4, .train_length = 4096};

Extension request(const char* method, double scale) { return {.method = method, .scale = scale}; }

void refuses(const Geometry& geometry, const std::string& word) {
  EXPECT_ERROR(make_plan(geometry, request("pro", 4)), usage, word);
}

TEST(Plan, RefusesEveryBadGeometryByItsValue) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const int dim : {0, -2, 2, 127, 65538, 1 << 30}) {
    Geometry g = kLlama2;
    g.rotary_dim = dim;
    refuses(g, std::to_string(dim));
  }
  for (const double base : {0.0, 1.0, -1e4, 0.5, 1e39, std::nan(""), kInfinity}) {
    Geometry g = kLlama2;
    g.base = base;
    refuses(g, "base");
  }
  for (const std::int64_t window : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 41}) {
    Geometry g = kLlama2;
    g.train_length = window;
    refuses(g, "window");
  }
  for (const double bad : {0.0, -1.0, std::nan(""), kInfinity}) {
    Geometry g = kLlama2;
    g.trained_factor.assign(64, 1);
    g.trained_factor[7] = bad;
    refuses(g, "pair 7");
    g = kLlama2;
    g.trained_attention_scale = bad;
    refuses(g, "attention scale");
  }
  Geometry g = kLlama2;
  g.trained_factor.assign(63, 1);
  refuses(g, "63");
  for (const double bad : {0.0, -1.0, std::nan(""), kInfinity}) {
    g = kLlama2;
    g.long_length = 32768;
    g.long_factor.assign(64, 2);
    g.long_factor[7] = bad;
    refuses(g, "long factor of pair 7");
  }
  g.long_factor.assign(63, 2);
  refuses(g, "long factor list has 63");
  g.long_factor.assign(64, 2);
  for (const std::int64_t length : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 41}) {
    g.long_length = length;
    refuses(g, "long factors reach");
  }
  g.long_factor.clear();
  g.long_length = 32768;
  refuses(g, "32768");
}

TEST(Plan, RefusesEveryBadScale) {
  for (const double scale :
       {0.5, 0.0, -4.0, 1e10, std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (const MethodInfo& m : methods()) {
      EXPECT_ERROR(make_plan(kLlama2, request(m.name.data(), scale)), usage, "scale");
    }
  }
  Extension negative = request("dynamic-ntk", 1);
  negative.length = -5;
  EXPECT_ERROR(make_plan(kLlama2, negative), usage, "-5");
}

TEST(Plan, RefusesAnUnknownMethodAndListsTheKnownOnes) {
  const Error e = test::error_of([&] { make_plan(kLlama2, request("yarm", 4)); });
  EXPECT_TRUE(contains(e.what(), "'yarm'"));
  for (const MethodInfo& m : methods()) EXPECT_TRUE(contains(e.hint(), m.name));
}

TEST(Plan, RefusesListsOfWrongLengthOrContent) {
  for (const char* method : {"longrope", "custom"}) {
    Extension e = request(method, 4);
    EXPECT_ERROR(make_plan(kLlama2, e), usage, "list");
    e.parameters.factors.assign(63, 1);
    EXPECT_ERROR(make_plan(kLlama2, e), usage, "63");
    for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
      e.parameters.factors.assign(64, 1);
      e.parameters.factors[3] = bad;
      EXPECT_ERROR(make_plan(kLlama2, e), usage, "factor 3");
    }
  }
  Extension both = request("custom", 4);
  both.parameters.factors.assign(64, 1);
  both.parameters.lambdas.assign(63, 1);
  EXPECT_ERROR(make_plan(kLlama2, both), usage, "either");
  Extension lambdas = request("custom", 4);
  lambdas.parameters.lambdas.assign(64, 1);
  EXPECT_ERROR(make_plan(kLlama2, lambdas), usage, "64");
  lambdas.method = "longrope";
  lambdas.parameters.lambdas.assign(63, 1);
  EXPECT_ERROR(make_plan(kLlama2, lambdas), usage, "not lambdas");
}

TEST(Plan, RefusesAParameterThatIsNoNumberOrGivesNone) {
  Extension e = request("power", 4);
  e.parameters.power = std::nan("");
  EXPECT_ERROR(make_plan(kLlama2, e), usage, "nan");
  e.parameters = {};
  e.parameters.attn_coef = -1;
  EXPECT_ERROR(make_plan(kLlama2, e), usage, "attention scale");
}

TEST(Plan, SaysWhenThereIsNothingToExtend) {
  // Every pair turns less than once: low and high both fall to pair 0.
  const Geometry tiny_window{.rotary_dim = 128, .base = 1e4, .train_length = 4};
  // Every pair turns more than 32 times: low is past the last pair.
  const Geometry huge_window{.rotary_dim = 64, .base = 2, .train_length = 1 << 20};
  for (const char* method : {"regressive", "uni", "pro", "power"}) {
    EXPECT_ERROR(make_plan(tiny_window, request(method, 4)), usage, "no middle");
    EXPECT_ERROR(make_plan(huge_window, request(method, 4)), usage, "no middle");
  }
  EXPECT_ERROR(make_plan(huge_window, request("yarn", 4)), usage, "backwards");
  EXPECT_NO_THROW(make_plan(huge_window, request("ntk", 4)));
}

TEST(Plan, DynamicNtkFollowsLengthAndFactor) {
  // transformers: base * (factor * n / L - (factor - 1)) ^ (d / (d - 2)).
  Extension e = request("dynamic-ntk", 2);
  e.length = 16384;
  const Plan plan = make_plan(kLlama2, e);
  const double base = 1e4 * std::pow(2.0 * 16384 / 4096 - 1, 128.0 / 126);
  for (int i = 0; i < 64; ++i) {
    EXPECT_NEAR(plan.theta()[i] / std::pow(base, -i / 64.0), 1, 1e-13);
  }
  e.length = 100;  // inside the window nothing grows
  EXPECT_EQ(make_plan(kLlama2, e).factor().back(), 1);
}

TEST(Plan, IsMultipliedWithTheTrainedFactors) {
  Geometry g = kLlama2;
  g.trained_factor.assign(64, 1);
  for (int i = 32; i < 64; ++i) g.trained_factor[i] = 8;
  const Plan plan = make_plan(g, request("pi", 4));
  EXPECT_EQ(plan.factor()[63], 4);
  EXPECT_DOUBLE_EQ(plan.theta()[63], std::pow(1e4, -63 / 64.0) / 32);
  // Slow pairs turn 8 times less, so the first pair under one turn comes earlier.
  EXPECT_LT(make_plan(g, request("pro", 4)).boundaries().high,
            make_plan(kLlama2, request("pro", 4)).boundaries().high);
}

TEST(Plan, TrainedFactorsOfOneChangeNothing) {
  Geometry ones = kLlama2;
  ones.trained_factor.assign(64, 1);
  for (const char* method : {"yarn", "yarn-rotations", "uni", "pro", "llama3"}) {
    const Plan a = make_plan(kLlama2, request(method, 16));
    const Plan b = make_plan(ones, request(method, 16));
    EXPECT_EQ(a.boundaries(), b.boundaries());
    EXPECT_EQ(a.factor(), b.factor());
  }
}

TEST(Plan, SameNumbersComparesNumbersOnly) {
  EXPECT_TRUE(make_plan(kLlama2, request("pro", 4)).same_numbers(make_plan(kLlama2, [] {
    Extension e = request("power", 4);
    e.parameters.power = 1;
    return e;
  }())));
  EXPECT_FALSE(
      make_plan(kLlama2, request("pro", 4)).same_numbers(make_plan(kLlama2, request("uni", 4))));
}

// The row is the only place that knows a name, in any case, and the prefix of ladders.
TEST(Methods, NamesAreFoundInAnyCase) {
  for (const MethodInfo& info : methods()) {
    std::string upper(info.name);
    for (char& c : upper) c = char(std::toupper(c));
    EXPECT_EQ(find_method(upper).name, info.name);
  }
  const Geometry g{.rotary_dim = 8, .base = 1e4, .train_length = 4096};
  EXPECT_EQ(make_plan(g, {.method = "YaRN", .scale = 4}).extension().method, "yarn");
}

TEST(Methods, LaddersHaveAPrefix) {
  EXPECT_EQ(growth_of("elastic:pro"), Growth::elastic);
  EXPECT_EQ(growth_of("far:pi(near=L/32)"), Growth::far);
  EXPECT_EQ(growth_of("vendor"), Growth::none);
  EXPECT_EQ(bare_name("far:pi(near=L/32)"), "pi");
  EXPECT_EQ(bare_name("vendor"), "vendor");
  EXPECT_EQ(method_name("pro", Growth::elastic), "elastic:pro");
  EXPECT_EQ(method_name("pi", Growth::far), "far:pi");
  EXPECT_EQ(method_name("pro", Growth::none), "pro");
}

TEST(Methods, EveryRuleOfAnEngineHasOneMethod) {
  EXPECT_EQ(method_of_rule("linear")->info.name, "pi");
  EXPECT_EQ(method_of_rule("yarn")->info.name, "yarn");
  EXPECT_EQ(method_of_rule(""), nullptr);
  EXPECT_EQ(method_of_rule("none"), nullptr);
  for (const MethodInfo& info : methods()) {
    const Method& row = method_row(info.name);
    if (row.native.empty()) continue;
    EXPECT_EQ(method_of_rule(row.native), &row) << info.name;
  }
}

TEST(Methods, YarnTemperature) {
  EXPECT_EQ(yarn_temperature(0.5), 1);
  EXPECT_EQ(yarn_temperature(1), 1);
  EXPECT_EQ(yarn_temperature(16), 1 + 0.1 * std::log(16.0));
}

}  // namespace
}  // namespace mrrope
