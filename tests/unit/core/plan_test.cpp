// SPDX-License-Identifier: Apache-2.0
#include "mrrope/plan.h"

#include <cctype>

#include "core/methods.h"
#include "support/test.h"

namespace mrrope {
namespace {

const Geometry kLlama2{.rotary_dim = 128, .base = 1e4, .train_length = 4096};

Extension request(const char* method, double scale) { return {.method = method, .scale = scale}; }

TEST(Plan, RefusesEveryBadScale) {
  for (const double scale :
       {0.5, 0.0, -4.0, 1e10, std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (const MethodInfo& m : methods()) {
      EXPECT_ERROR(make_plan(kLlama2, request(m.name.data(), scale)), usage, "scale");
    }
  }
}

TEST(Plan, RefusesAnUnknownMethodAndListsTheKnownOnes) {
  const Error e = test::error_of([&] { make_plan(kLlama2, request("yarm", 4)); });
  EXPECT_TRUE(contains(e.what(), "'yarm'"));
  for (const MethodInfo& m : methods()) EXPECT_TRUE(contains(e.hint(), m.name));
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
