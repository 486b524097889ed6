// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/random.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {
namespace {

const Geometry kSmall{.rotary_dim = 16, .base = 10000, .train_length = 256};

std::vector<NamedPlan> plans_of(const std::vector<std::string>& methods, double scale) {
  std::vector<NamedPlan> plans;
  for (const std::string& method : methods) {
    Extension e;
    e.method = method;
    if (method != "none") e.scale = scale;
    plans.push_back({method, make_plan(kSmall, e)});
  }
  return plans;
}

TEST(DigitsFigure, TerminalShowsDigitsOfAtMostTwoPlans) {
  const TheoryFigure two = digits_figure(kSmall, plans_of({"none", "pro"}, 4), {});
  EXPECT_EQ(two.terminal.size(), 2u);
  const TheoryFigure three = digits_figure(kSmall, plans_of({"none", "uni", "pro"}, 4), {7, 300});
  EXPECT_EQ(three.terminal.size(), 1u);
  EXPECT_EQ(three.page.size(), 2u);
  EXPECT_EQ(three.data.rows.size(), 8u) << "a row per pair";
  EXPECT_EQ(three.json["plans"][2]["positions"][1]["position"], 300);
  EXPECT_EQ(three.json["plans"][2]["counted_positions"], 1024) << "as far as the plans reach";
}

TEST(EstimateFigure, ComparesTheGivenOrDefaultBases) {
  EXPECT_EQ(estimate_figure(kSmall, {100, 5000}, 512, 0.05).json["bases"].size(), 2u);
  Geometry odd = kSmall;
  odd.base = 777;
  EXPECT_EQ(estimate_figure(odd, {}, 512, 0.05).json["bases"].size(), 7u) << "six and its own";
}

TEST(FactorsFigure, HasTwoChartsPerGroup) {
  const TheoryFigure f = factors_figure(kSmall, {{" at scale 16", plans_of({"uni", "pro"}, 16)},
                                                 {" at scale 4", plans_of({"uni", "pro"}, 4)}});
  ASSERT_EQ(f.figures.size(), 4u);
  EXPECT_NE(f.figures[2].title.find(" at scale 4"), std::string::npos);
  EXPECT_EQ(f.data.rows.size(), 4u * 8u) << "a row per plan and pair";
  EXPECT_EQ(f.terminal.front().rows.size(), 4u);
}

TEST(BoundFigure, ByDefaultReachesAsFarAsThePlans) {
  EXPECT_EQ(bound_figure(kSmall, plans_of({"none", "pro"}, 4), 0, 0).json["length"], 1024);
  const TheoryFigure f = bound_figure(kSmall, plans_of({"none", "pro"}, 4), 512, 600);
  EXPECT_EQ(f.json["length"], 512);
  EXPECT_TRUE(f.json.contains("least_base"));
  EXPECT_TRUE(f.json["plans"][0]["least_scale"].is_null()) << "none takes no scale";
  EXPECT_EQ(f.data.header.size(), 6u);
}

Capture some_capture() {
  Random random(3);
  CapturedLayer layer{5, 4, 2, 16, {}, {}};
  Capture capture{32, {}};
  const auto draw = [&] { return float(random.below(2001)) / 1000 - 1; };
  for (int i = 0; i < 32 * 4 * 16; ++i) layer.queries.push_back(draw());
  for (int i = 0; i < 32 * 2 * 16; ++i) layer.keys.push_back(draw());
  capture.layers.push_back(layer);
  return capture;
}

TEST(AttentionFigure, NeedsOnlyCapturedVectors) {
  const auto plans = plans_of({"none", "pro"}, 4);
  const TheoryFigure a = attention_figure(kSmall, plans, some_capture(), {"a model", 10, 1});
  EXPECT_EQ(a.json["model"], "a model");
  EXPECT_EQ(a.json["layers"], "5");
  EXPECT_EQ(a.json["tokens"], 32);
  EXPECT_EQ(a.json["distances"].back(), 1024);
  ASSERT_EQ(a.json["plans"].size(), 2u);
  EXPECT_TRUE(a.json["plans"][1]["ks"].is_number());
  EXPECT_EQ(a.figures.size(), 3u);
  EXPECT_EQ(attention_figure(kSmall, plans, some_capture(), {"a model", 10, 1}).json, a.json);
  EXPECT_NE(attention_figure(kSmall, plans, some_capture(), {"a model", 10, 2}).json, a.json);
  // Without a plan that reaches past the window nothing can be compared there.
  const auto inside = plans_of({"none"}, 1);
  EXPECT_TRUE(attention_figure(kSmall, inside, some_capture(), {"a model", 10, 1})
                  .json["plans"][0]["ks"]
                  .is_null());
}

TEST(ClaimsFigure, TerminalShowsLinesAndPageShowsATable) {
  const TheoryFigure f = claims_figure({});
  EXPECT_EQ(f.page.size(), 1u);
  EXPECT_TRUE(f.terminal.empty());
  EXPECT_EQ(f.page.front().rows.size(), f.json["claims"].size());
  for (const auto& claim : f.json["claims"]) {
    EXPECT_NE(f.details.find(claim["id"].get<std::string>()), std::string::npos);
  }
}

}  // namespace
}  // namespace mrrope::theory
