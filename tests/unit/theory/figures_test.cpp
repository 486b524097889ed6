// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {
namespace {

const Geometry kSmall{.rotary_dim = 16, .base = 10000, .train_length = 256};

std::vector<NamedPlan> plans_of(const std::vector<std::string>& methods, double scale) {
  std::vector<NamedPlan> plans;
  for (const std::string& method : methods) {
    Extension e{.method = method};
    if (method != "none") e.scale = scale;
    plans.push_back({method, make_plan(kSmall, e)});
  }
  return plans;
}

TEST(BoundFigure, ShowsAnEnvelopeAndWhereTheSumTurnsNegative) {
  const TheoryFigure f = bound_figure(kSmall, plans_of({"none", "pro"}, 4), 512);
  const auto& chart = std::get<report::LineChart>(f.figures[0].content);
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_LT(chart.series[0].points.size(), 64u);
  ASSERT_TRUE(chart.series[0].root.has_value());
  EXPECT_EQ(chart.series[0].root->x, f.json["plans"][0]["first_negative"].get<double>());
  for (const report::ChartPoint& p : chart.series[0].points) EXPECT_LE(p.low, p.high);
  EXPECT_TRUE(contains(f.figures[0].note, "none "));
}

TEST(BoundFigure, OfAFewPositions) {
  Geometry wide = kSmall;
  wide.train_length = 4096;
  for (const std::int64_t length : {1, 2, 40}) {
    const TheoryFigure f = bound_figure(wide, {{"none", make_plan(wide, {})}}, length);
    for (const report::ChartPoint& p :
         std::get<report::LineChart>(f.figures[0].content).series[0].points) {
      EXPECT_LT(p.x, double(length));
    }
  }
}

TEST(TheoryPage, PicturesComeBeforeWords) {
  for (const TheoryFigure& f : {bound_figure(kSmall, plans_of({"none", "pro"}, 4), 512),
                                digits_figure(kSmall, plans_of({"none", "pro"}, 4), {7, 300})}) {
    const std::string page = page_of(f);
    EXPECT_LT(page.find("<figure"), page.find("rotary_dim")) << f.title;
    for (const report::Figure& figure : f.figures) EXPECT_FALSE(figure.note.empty()) << f.title;
  }
  const TheoryFigure digits = digits_figure(kSmall, plans_of({"none", "pro"}, 4), {7, 300});
  ASSERT_EQ(digits.figures.size(), 1u);
  const auto& maps = std::get<std::vector<report::HeatMap>>(digits.figures[0].content);
  ASSERT_EQ(maps.size(), 1u) << "one figure with a key";
  EXPECT_FALSE(maps[0].key.empty());
  EXPECT_EQ(maps[0].rows, (std::vector<std::string>{"none 7", "none 300", "pro 7", "pro 300"}));
}

TEST(AttentionFigure, DrawsPairsAtTheDistancesOfTheText) {
  const AttentionPlaces drawn = draw_places(kSmall, {{2, 4}, {7, 8}}, 2048, {"a model", 10, 1});
  EXPECT_EQ(drawn.distances.back(), 2048 - 128);
  ASSERT_EQ(drawn.places.size(), drawn.distances.size() * 10);
  bool both[2] = {false, false};
  for (std::size_t i = 0; i < drawn.places.size(); ++i) {
    const PairPlace& p = drawn.places[i];
    EXPECT_EQ(p.query - p.key, drawn.distances[i / 10]);
    EXPECT_GE(p.key, 0);
    EXPECT_LT(p.query, 2048);
    ASSERT_TRUE(p.layer == 2 || p.layer == 7);
    EXPECT_LT(p.head, p.layer == 2 ? 4 : 8);
    both[p.layer == 7 ? 1 : 0] = true;
  }
  EXPECT_TRUE(both[0] && both[1]);
  for (const PairPlace& p : drawn.inside) EXPECT_LT(p.query, kSmall.train_length);
}

// A model whose rotated vectors are known: the score at distance d is then d itself.
TEST(AttentionFigure, ShowsTheScoresThatWereRead) {
  const auto plans = plans_of({"none", "pro"}, 4);
  const AttentionRequest request{"a model", 3, 1};
  const AttentionPlaces drawn = draw_places(kSmall, {{0, 2}}, 1024, request);
  const auto [low, high] = make_plan(kSmall, Extension{}).boundaries();
  ASSERT_LT(high, 8) << "the last pair is not in the middle";
  const auto pair_with = [first = std::size_t(low)](double score) {
    RotatedPair pair{std::vector<float>(16, 0.0F), std::vector<float>(16, 0.0F)};
    pair.query[first] = 4;  // the square root of a row
    pair.key[first] = float(score);
    pair.query[7] = pair.key[7] = 100;
    return pair;
  };
  std::vector<std::vector<RotatedPair>> rotated(2);
  for (const PairPlace& p : drawn.places) {
    rotated[0].push_back(pair_with(double(p.query - p.key)));
    rotated[1].push_back(pair_with(-double(p.query - p.key)));
  }
  std::vector<RotatedPair> inside;
  for (const PairPlace& p : drawn.inside) inside.push_back(pair_with(double(p.query - p.key)));
  const TheoryFigure f = attention_figure(kSmall, plans, drawn, rotated, inside, request);
  EXPECT_EQ(f.json["tokens"], 1024);
  ASSERT_EQ(f.json["plans"].size(), 2u);
  for (std::size_t d = 0; d < drawn.distances.size(); ++d) {
    EXPECT_NEAR(f.json["plans"][0]["mean"][d].get<double>(), double(drawn.distances[d]), 1e-3);
  }
  EXPECT_EQ(f.json["plans"][1]["falls_until"], f.json["pooled_at"].back());
  EXPECT_LT(f.json["plans"][0]["falls_until"], 10);
  // Past the window the first plan's scores are above every one inside it, the other's below.
  EXPECT_EQ(f.json["plans"][0]["ks"], 1);
  EXPECT_EQ(f.json["plans"][1]["ks"], 1);
}

}  // namespace
}  // namespace mrrope::theory
