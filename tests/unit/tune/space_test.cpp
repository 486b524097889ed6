// SPDX-License-Identifier: Apache-2.0
#include "tune/space.h"

#include "formats/plan_file.h"
#include "support/test.h"

namespace mrrope::tune {
namespace {

Geometry tiny() { return {.rotary_dim = 128, .base = 10000, .train_length = 1024}; }

TEST(Space, RefusesALengthInsideTheWindow) {
  EXPECT_THROW(make_space(tiny(), 1024, Growth::none), Error);
}

TEST(Space, HoldsEveryPublishedMethodTwice) {
  for (const Growth growth : {Growth::none, Growth::elastic}) {
    const auto all = published(make_space(tiny(), 8192, growth));
    ASSERT_EQ(all.size(), 8u);
    for (const Proposal& p : all) {
      EXPECT_EQ(p.ladder.growth(), growth);
      EXPECT_EQ(p.ladder.longest(), 8192);
      EXPECT_DOUBLE_EQ(p.ladder.rungs().back().plan.extension().scale, 8 * p.headroom());
    }
  }
}

TEST(Space, BetasOfAPointGiveItsBoundaries) {
  const Space space = make_space(tiny(), 8192, Growth::none);
  for (double low = space.axes[kLow].lower; low <= space.axes[kLow].upper; ++low) {
    for (double high = space.axes[kHigh].lower; high <= space.axes[kHigh].upper; ++high) {
      const Proposal p = proposal_at(space, {0.5, low, high, 0.07, 1.1}, "start");
      const Boundaries b = p.ladder.rungs().back().plan.boundaries();
      EXPECT_EQ(b.low, std::lround(low));
      EXPECT_EQ(b.high, std::max<long>(std::lround(high), b.low + 1));
    }
  }
}

TEST(Space, UniAndProAreMembersBitForBit) {
  const Space space = make_space(tiny(), 8192, Growth::none);
  for (const Proposal& p : published(space)) {
    if (!p.point) continue;
    EXPECT_EQ(proposal_at(space, *p.point, "start").numbers, p.numbers) << p.name;
  }
}

// What is published starts with the near part of the default, which must be beaten too.
TEST(Space, WithANearPartSearchesItsLengthToo) {
  Geometry wide = tiny();
  wide.base = 1e6;
  wide.train_length = 32768;
  for (const auto& [g, ctx, near] :
       {std::tuple(tiny(), 4096, NearPart{256, 256}), {wide, 131072, NearPart{1024, 1024}}}) {
    const Space space = make_space(g, ctx, Growth::far);
    const auto all = published(space);
    ASSERT_EQ(all.size(), 8u);
    for (const Proposal& p : all) {
      EXPECT_EQ(p.ladder.near(), near) << p.name;
      EXPECT_EQ(p.ladder.rungs().back().plan.attention_scale(), 1) << p.name;
      if (p.point) {
        EXPECT_EQ(proposal_at(space, *p.point, "start").numbers, p.numbers) << p.name;
      }
    }
    EXPECT_EQ(all[0].name, "far:pi");
    EXPECT_EQ(all[0].plan, ladder_digest(make_ladder(g, parse_method("auto"), ctx)));
    EXPECT_FALSE(all[0].point) << "interpolation has no middle";
    EXPECT_EQ(all[1].name, "far:pi(headroom=1.6)");
    EXPECT_EQ(all[1].plan, ladder_digest(make_ladder(g, parse_method(all[1].name), ctx)));
  }

  const Space space = make_space(tiny(), 8192, Growth::far);
  const auto all = published(space);
  Point point = *all.back().point;
  point[kNear] = 0.25;
  point[kHeadroom] = 2;
  const Proposal moved = proposal_at(space, point, "start");
  EXPECT_EQ(moved.ladder.near()->length, 256);
  EXPECT_EQ(moved.ladder.headroom(), 2);
  EXPECT_NE(moved.numbers, all.back().numbers);
  EXPECT_TRUE(contains(moved.name, "far:power 1"));
  EXPECT_TRUE(contains(moved.name, "near 256"));

  // A middle at the first pair is nearly interpolation.
  point = {1, 0, 1, 0, kFarHeadroom, 1.19, 0, 0.25};
  const Proposal nearly = proposal_at(space, point, "start");
  const Plan& plan = nearly.ladder.rungs().back().plan;
  const double scale = plan.extension().scale;
  EXPECT_EQ(plan.factor()[0], 1);
  for (std::size_t i = 1; i < plan.factor().size(); ++i) EXPECT_EQ(plan.factor()[i], scale);
}

TEST(Space, APlanOfAllKeysStartsFarKeysWithoutItsTemperature) {
  const Space far = make_space(tiny(), 8192, Growth::far);
  const Space still = make_space(tiny(), 8192, Growth::none);
  const Proposal p = proposal_at(still, {0.5, 20, 40, 0.07, 1.1}, "start");
  const Proposal moved = from_plan(far, p.ladder);
  EXPECT_EQ(moved.ladder.near(), (NearPart{256, 256}));
  EXPECT_EQ(moved.ladder.rungs().back().plan.attention_scale(), 1);
  EXPECT_EQ(moved.headroom(), kFarHeadroom);
  const Proposal back = from_plan(still, moved.ladder);
  EXPECT_GT(back.ladder.rungs().back().plan.attention_scale(), 1);
  EXPECT_EQ(back.headroom(), 1);
  EXPECT_EQ(from_plan(far, moved.ladder).numbers, moved.numbers);
}

TEST(Space, SpreadStaysInTheBoundsAndDependsOnTheSeed) {
  const Space space = make_space(tiny(), 8192, Growth::elastic);
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

TEST(Space, PlanFileTransfersToAnotherModel) {
  const Space space = make_space(tiny(), 8192, Growth::none);
  const Proposal p = proposal_at(space, {0.3, 9, 38, 0.06, 1.2}, "start");
  const Proposal again = from_plan(space, p.ladder);
  EXPECT_EQ(again.numbers, p.numbers);
  EXPECT_NEAR(again.headroom(), 1.2, 1e-9);

  Geometry other = tiny();
  other.rotary_dim = 64;
  other.base = 100000;
  other.train_length = 8192;
  const Proposal moved = from_plan(make_space(other, 32768, Growth::none), p.ladder);
  Parameters same = p.method.parameters;
  same.headroom = moved.headroom();
  EXPECT_EQ(moved.method.parameters, same);
  EXPECT_NEAR(moved.headroom(), 1.2, 1e-9);
  EXPECT_NEAR(moved.ladder.rungs().back().plan.extension().scale, 4.8, 1e-9);

  Extension list{.method = "custom", .scale = 8};
  list.parameters.factors.assign(64, 8);
  const Ladder factors = make_ladder(make_plan(tiny(), list), 8192);
  EXPECT_THROW(from_plan(make_space(tiny(), 8192, Growth::elastic), factors), Error);
  EXPECT_THROW(from_plan(make_space(other, 32768, Growth::none), factors), Error);
}

TEST(Space, LadderKeepsStepAndHeadroom) {
  const Space space = make_space(tiny(), 8192, Growth::elastic);
  const Proposal p = proposal_at(space, {0.3, 9, 38, 0.06, 1.2, 1.3, 0.5}, "start");
  const Proposal again = from_plan(space, p.ladder);
  EXPECT_EQ(again.numbers, p.numbers);
  EXPECT_EQ(again.ladder.rung_step(), 1.3);
  EXPECT_EQ(again.ladder.sharpen(), 0.5);
  const Proposal blunt = proposal_at(space, {0.3, 9, 38, 0.06, 1.2, 1.3, 0}, "start");
  EXPECT_NE(blunt.numbers, p.numbers) << "another plan, which is measured too";
}

TEST(Space, LikelyPlansHaveANotationThatMakesThemAgain) {
  for (const std::int64_t window : {1024, 32768}) {
    Geometry g = tiny();
    g.train_length = window;
    const Space space = make_space(g, 4 * window, Growth::far);
    const auto all = likely(space);
    EXPECT_GE(all.size(), 5u);
    EXPECT_LE(all.size(), 8u);
    EXPECT_EQ(all.front().name, "auto");
    bool sharpened = false;
    for (const Proposal& p : all) {
      EXPECT_EQ(ladder_digest(make_ladder(g, parse_method(p.notation), 4 * window)), p.plan)
          << p.notation;
      sharpened |= p.ladder.sharpen() > 0;
    }
    EXPECT_TRUE(sharpened);
  }
}

}  // namespace
}  // namespace mrrope::tune
