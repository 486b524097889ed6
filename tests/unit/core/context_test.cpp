// SPDX-License-Identifier: Apache-2.0
#include "core/context.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "base/text.h"
#include "support/expect_error.h"

namespace mrrope {
namespace {

const Geometry kGeometry{.rotary_dim = 64, .base = 1e5, .train_length = 8192};

PlanOrLadder made(const ContextRequest& request, Spelling spelling = Spelling::keys) {
  return make_context(kGeometry, request, spelling);
}

double scale_of(const ContextRequest& request) {
  return std::get<Plan>(made(request)).extension().scale;
}

TEST(Context, AStaticPlanReachesTheContextAndItsHeadroom) {
  EXPECT_EQ(scale_of({.method = "pro", .ctx = 32768}), 4);
  EXPECT_EQ(scale_of({.method = "pro", .scale = 4}), 4);
  EXPECT_EQ(scale_of({.method = "pro", .ctx = 32768, .headroom = 1.25}), 5);
  EXPECT_EQ(scale_of({.method = "pro", .ctx = 4096, .headroom = 1.25}), 1);
  EXPECT_EQ(scale_of({.method = "none", .ctx = 32768}), 1);
}

TEST(Context, AMethodThatFollowsTheLengthHasAScaleOfItsOwn) {
  const Plan plan = std::get<Plan>(made({.method = "dynamic-ntk", .scale = 2, .ctx = 32768}));
  EXPECT_EQ(plan.extension().scale, 2);
  EXPECT_EQ(plan.extension().length, 32768);
  check_reach({.method = "dynamic-ntk", .scale = 2, .ctx = 32768}, Spelling::keys);
}

TEST(Context, AContextThatGrowsIsALadder) {
  const Ladder ladder = std::get<Ladder>(made({.method = "Elastic:Pro", .scale = 4}));
  EXPECT_EQ(ladder.longest(), 32768);
  EXPECT_EQ(ladder.headroom(), 1);
  const Ladder far = std::get<Ladder>(made({.method = "far:pi", .ctx = 32768, .near = 1024}));
  EXPECT_EQ(far.near(), (NearPart{1024, 256}));
  EXPECT_EQ(far.headroom(), 1);
}

TEST(Context, AutoIsAFunctionOfGeometryAndLength) {
  const auto method = [](ContextRequest request) {
    return resolve_auto(kGeometry, std::move(request)).method;
  };
  EXPECT_EQ(method({.method = "auto", .ctx = 8192}), "none");
  EXPECT_EQ(method({.method = "Auto", .scale = 1}), "none");
  EXPECT_EQ(method({.method = "auto", .ctx = 8193}), "far:pi");
  EXPECT_EQ(method({.method = "pro", .ctx = 8193}), "pro");
  EXPECT_EQ(full_name({.method = "AUTO"}), "auto");
  EXPECT_EQ(std::get<Plan>(made({.method = "auto", .ctx = 4096})).extension().method, "none");
  const Ladder ladder = std::get<Ladder>(made({.method = "auto", .ctx = 32768, .headroom = 1.5}));
  EXPECT_EQ(ladder.longest(), 32768);
  EXPECT_EQ(ladder.headroom(), 1.5);

  for (const std::int64_t ctx : {32769, 100000, 131072}) {
    const Geometry geometry{.rotary_dim = 64, .base = 1e6, .train_length = 32768};
    const Ladder one =
        std::get<Ladder>(make_context(geometry, {.method = "auto", .ctx = ctx}, Spelling::keys));
    EXPECT_EQ(one.longest(), ctx);
    EXPECT_EQ(one.rungs()[0].plan.extension().scale, 1);
    const std::int64_t border = one.rungs().back().border;
    for (std::size_t i = 1; i < one.rungs().size(); ++i) {  // one scale, the least that will do
      EXPECT_DOUBLE_EQ(one.rungs()[i].plan.extension().scale,
                       std::max(1.0, double(border) / (32768 - 2048)));
    }
  }
}

TEST(Context, TheDefaultsOfFarMethodsFollowTheLength) {
  const auto far = [](std::int64_t window, std::int64_t ctx) {
    const Geometry geometry{.rotary_dim = 64, .base = 1e6, .train_length = window};
    const Ladder ladder =
        std::get<Ladder>(make_context(geometry, {.method = "far:pro", .ctx = ctx}, Spelling::keys));
    return std::tuple(ladder.near()->length, ladder.near()->step, ladder.headroom(),
                      ladder.rung_step());
  };
  EXPECT_EQ(far(8192, 32768), std::tuple(256, 256, 1.0, 4.0));
  EXPECT_EQ(far(8192, 32769), std::tuple(2048, 2048, 1.6, 1.19));
  EXPECT_EQ(far(32768, 131072), std::tuple(1024, 1024, 1.0, 4.0));
  EXPECT_EQ(far(1024, 2000), std::tuple(256, 256, 1.0, 2.0));
  EXPECT_EQ(far(512, 1024), std::tuple(128, 128, 1.0, 2.0));
}

// What a note names can be typed: --method far:pi is the plan of auto at every length.
TEST(Context, AutoIsTheMethodThatItNames) {
  for (const std::int64_t window : {16, 512, 8192, 131072}) {
    const Geometry geometry{.rotary_dim = 64, .base = 1e6, .train_length = window};
    for (const double times : {0.5, 1.0, 1.001, 1.5, 2.0, 3.9, 4.0, 4.01, 5.0, 16.0, 1500.0}) {
      const ContextRequest asked{.method = "auto", .ctx = std::llround(times * double(window))};
      const std::string name = description(resolve_auto(geometry, asked));
      const ContextRequest typed{.method = name, .ctx = asked.ctx};
      const auto digest = [&](const ContextRequest& request) {
        const PlanOrLadder made = make_context(geometry, request, Spelling::flags);
        std::string text;
        for (const Rung& rung : as_ladder(made, asked.ctx).rungs()) {
          text += cat(rung.length, " ", rung.border, " ", rung.shift);
          for (const double factor : rung.plan.factor()) text += cat(" ", factor);
        }
        return text;
      };
      EXPECT_EQ(digest(asked), digest(typed)) << name << " at " << asked.ctx;
    }
  }
}

TEST(Context, TheBorderMovesByMoreWhereItWouldMoveTooOften) {
  const auto step = [](std::int64_t ctx) {
    return std::get<Ladder>(made({.method = "far:pi", .ctx = ctx})).near()->step;
  };
  EXPECT_EQ(step(8192 * 1023), 2048);
  EXPECT_EQ(step(8192 * 1500), 3001);
  EXPECT_EQ(std::get<Ladder>(made({.method = "auto", .ctx = 8192 * 1500})).longest(), 8192 * 1500);
}

TEST(Context, DescribesAMethodWithItsSettings) {
  EXPECT_EQ(description({.method = "elastic:PRO", .ctx = 32768}), "elastic:pro");
  ContextRequest request{.method = "elastic:power", .headroom = 1.25};
  request.parameters.power = 0;
  EXPECT_EQ(description(request), "elastic:power --power=0 --headroom=1.25");
}

void expect_refused(const ContextRequest& request, const std::string& word,
                    Spelling spelling = Spelling::keys) {
  test::expect_error(ErrorKind::usage, word, [&] {
    check_reach(request, spelling);
    made(request, spelling);
  });
}

TEST(Context, RefusesWhatAMethodDoesNotUse) {
  expect_refused({.method = "pro", .ctx = 32768, .rung_step = 1.5}, "rung_step is for contexts");
  expect_refused({.method = "elastic:pro", .ctx = 32768, .near = 9}, "not for elastic:pro");
  expect_refused({.method = "elastic:pro", .scale = 1e300}, "1e+300");
  expect_refused({.method = "elastic:pro"}, "no context length");
  expect_refused({.method = "elastic:none", .ctx = 32768}, "elastic:none is not possible");
  expect_refused({.method = "elastic:NONE", .ctx = 512}, "same at every length");
  expect_refused({.method = "auto"}, "no context length");
  expect_refused({.method = "auto", .scale = 4, .ctx = 32768}, "both set how far auto");
  expect_refused({.method = "auto", .ctx = 4096, .rung_step = 1.5}, "not for none");
  expect_refused({.method = "pro"}, "ctx or scale is required for pro");
  expect_refused({.method = "pro", .ctx = 32768, .headroom = 0.5}, "0.5");
  expect_refused({.method = "prp", .ctx = 32768}, "prp");
  expect_refused({.method = "pro", .scale = 4, .ctx = 32768}, "ctx 32768 and scale 4");
}

TEST(Context, MessagesSpellFlagsAndKeys) {
  expect_refused({.method = "pro", .ctx = 32768, .near_step = 9}, "--near and --near-step",
                 Spelling::flags);
  expect_refused({.method = "pro"}, "--ctx or --scale", Spelling::flags);
}

}  // namespace
}  // namespace mrrope
