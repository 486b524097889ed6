// SPDX-License-Identifier: Apache-2.0
#include "tune/space.h"

#include "base/text.h"
#include "formats/plan_file.h"
#include "support/test.h"

namespace mrrope::tune {
namespace {

// Of a transcript: {"window", "base", "rotary_dim", "ctx", "growth"}.
Space space_of(const json& given) {
  const Geometry g{.rotary_dim = given.value("rotary_dim", 128),
                   .base = given.value("base", 1e4),
                   .train_length = given.value("window", 1024)};
  const std::string growth = given.value("growth", "");
  return make_space(g, given.value("ctx", 8192),
                    growth == "far"       ? Growth::far
                    : growth == "elastic" ? Growth::elastic
                                          : Growth::none);
}

// Its last rung, whether its point and its notation make it again, and whether it is the default.
// The plan of a static proposal records the length too, which its notation alone does not.
std::string described(const Space& space, const Proposal& p) {
  const Ladder& ladder = p.ladder;
  EXPECT_EQ(ladder.growth(), space.growth);
  const Plan& plan = ladder.rungs().back().plan;
  const auto [low, high] = plan.boundaries();
  const std::vector<double>& factor = plan.factor();
  std::string out =
      cat(p.name, "\n  to ", ladder.longest(), ": scale ", significant(plan.extension().scale, 9),
          ", factors ", significant(factor[0], 5), " ", significant(factor[1], 5), " .. ",
          significant(factor.back(), 5), ", middle ", low, "..", high, ", attention ",
          significant(plan.attention_scale(), 5), ", headroom ", significant(p.headroom(), 9));
  if (ladder.rung_step() > 0) out += cat(", step ", significant(ladder.rung_step(), 9));
  if (ladder.sharpen() > 0) out += cat(", sharpen ", significant(ladder.sharpen(), 9));
  if (const auto& near = ladder.near()) out += cat(", near ", near->length, " by ", near->step);
  if (!p.point) out += "; no point";
  if (p.point && proposal_at(space, *p.point, "start").numbers != p.numbers) out += "; moved";
  const Ladder again = make_ladder(space.geometry, parse_method(p.notation), ladder.longest());
  out += cat(ladder_digest(again) == p.plan ? "; made by " : "; not made by ", p.notation);
  return out + (p.plan == unnamed(space).plan ? "; the default" : "");
}

std::string described(const Space& space, const std::vector<Proposal>& proposals) {
  return joined(mapped(proposals, [&](const Proposal& p) { return described(space, p); }), "\n");
}

TEST(Space, ProposesPlans) {
  test::expect_functions(
      "space", {{"published",
                 [](auto& a) {
                   const Space space = space_of(json::parse(a[0]));
                   return described(space, published(space));
                 }},
                {"likely",
                 [](auto& a) {
                   const Space space = space_of(json::parse(a[0]));
                   return described(space, likely(space));
                 }},
                // A point of the first space, then each plan as one given to the next space.
                {"point", [](auto& a) {
                   const Space first = space_of(json::parse(a[0]));
                   const auto point = json::parse(a[0])["point"].template get<Point>();
                   Proposal p = proposal_at(first, point, "start");
                   std::string out = described(first, p);
                   for (std::size_t i = 1; i < a.size(); ++i) {
                     const Space next = space_of(json::parse(a[i]));
                     const std::string before = p.numbers;
                     p = from_plan(next, p.ladder);
                     out += "\n" + described(next, p) + (p.numbers == before ? "; as before" : "");
                   }
                   return out;
                 }}});
}

TEST(Space, BetasOfAPointGiveItsBoundaries) {
  const Space space = space_of(json::object());
  for (double low = space.axes[kLow].lower; low <= space.axes[kLow].upper; ++low) {
    for (double high = space.axes[kHigh].lower; high <= space.axes[kHigh].upper; ++high) {
      const Proposal p = proposal_at(space, {0.5, low, high, 0.07, 1.1}, "start");
      const Boundaries b = p.ladder.rungs().back().plan.boundaries();
      EXPECT_EQ(b.low, std::lround(low));
      EXPECT_EQ(b.high, std::max<long>(std::lround(high), b.low + 1));
    }
  }
}

TEST(Space, SpreadStaysInTheBoundsAndDependsOnTheSeed) {
  const Space space = space_of({{"growth", "elastic"}});
  const auto a = spread(space, 50, 1);
  ASSERT_EQ(a.size(), 50u);
  EXPECT_EQ(a, spread(space, 50, 1));
  EXPECT_NE(a, spread(space, 50, 2));
  for (std::size_t i = 0; i < space.axes.size(); ++i) {
    int upper_half = 0;
    for (const Point& p : a) {
      EXPECT_GE(p[i], space.axes[i].lower);
      EXPECT_LE(p[i], space.axes[i].upper);
      upper_half += p[i] > (space.axes[i].start_lower + space.axes[i].start_upper) / 2;
    }
    EXPECT_NEAR(upper_half, 25, 5) << "axis " << i;
  }
}

TEST(Space, SharpnessAloneMakesAnotherPlan) {
  const Space space = space_of({{"growth", "elastic"}});
  EXPECT_NE(proposal_at(space, {0.3, 9, 38, 0.06, 1.2, 1.3, 0.5}, "start").numbers,
            proposal_at(space, {0.3, 9, 38, 0.06, 1.2, 1.3, 0}, "start").numbers);
}

TEST(Space, AListOfFactorsIsForOneModel) {
  const Space other = space_of({{"rotary_dim", 64}, {"base", 1e5}, {"window", 4096}});
  Extension list{.method = "custom", .scale = 8};
  list.parameters.factors.assign(64, 8);
  const Ladder factors = make_ladder(make_plan(space_of(json::object()).geometry, list), 8192);
  EXPECT_ERROR(from_plan(space_of({{"growth", "elastic"}}), factors), usage, "a ladder");
  EXPECT_ERROR(from_plan(other, factors), usage, "another geometry");
}

}  // namespace
}  // namespace mrrope::tune
