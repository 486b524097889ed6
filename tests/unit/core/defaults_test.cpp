// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "core/methods.h"
#include "support/test.h"

namespace mrrope {
namespace {

const Geometry kGeometry{.rotary_dim = 64, .base = 1e5, .train_length = 8192};

Ladder made(const char* method, std::int64_t ctx, std::optional<double> scale = std::nullopt) {
  return make_ladder(kGeometry, parse_method(method), ctx, scale);
}

double scale_of(const char* method, std::int64_t ctx, std::optional<double> scale = std::nullopt) {
  const Ladder ladder = made(method, ctx, scale);
  EXPECT_EQ(ladder.growth(), Growth::none);
  return ladder.rungs().front().plan.extension().scale;
}

TEST(MethodToLadder, AStaticPlanReachesTheContextAndItsHeadroom) {
  EXPECT_EQ(scale_of("pro", 32768), 4);
  EXPECT_EQ(scale_of("pro", 0, 4), 4);
  EXPECT_EQ(scale_of("pro(headroom=1.25)", 32768), 5);
  EXPECT_EQ(scale_of("pro(headroom=1.25)", 4096), 1);
  EXPECT_EQ(scale_of("none", 32768), 1);
  EXPECT_EQ(made("pro", 32768).longest(), 32768);
  EXPECT_EQ(made("pro(headroom=1.25)", 0, 4).longest(), 32768) << "headroom is scale, not length";
  EXPECT_EQ(made("none", 0).longest(), 8192);
}

TEST(MethodToLadder, AMethodThatFollowsTheLengthHasAScaleOfItsOwn) {
  const Ladder ladder = made("dynamic-ntk", 32768, 2);
  EXPECT_EQ(ladder.rungs().front().plan.extension().scale, 2);
  EXPECT_EQ(ladder.rungs().front().plan.extension().length, 32768);
  check_reach(parse_method("dynamic-ntk"), 32768, 2);
}

TEST(MethodToLadder, AContextThatGrowsIsALadder) {
  const Ladder ladder = made("Elastic:Pro", 0, 4);
  EXPECT_EQ(ladder.growth(), Growth::elastic);
  EXPECT_EQ(ladder.longest(), 32768);
  EXPECT_EQ(ladder.headroom(), 1);
  const Ladder far = made("far:pi(near=1024)", 32768);
  EXPECT_EQ(far.growth(), Growth::far);
  EXPECT_EQ(far.near(), (NearPart{1024, 1024}));
  EXPECT_EQ(far.headroom(), 1.25);
  EXPECT_EQ(made("far:pi(near=L/8,near_step=1k)", 32768).near(), (NearPart{1024, 1024}));
}

TEST(Auto, IsAFunctionOfGeometryAndLength) {
  const auto method = [](const char* name, std::int64_t ctx,
                         std::optional<double> scale = std::nullopt) {
    return to_string(resolve_auto(kGeometry, parse_method(name), ctx, scale));
  };
  EXPECT_EQ(method("auto", 8192), "none");
  EXPECT_EQ(method("Auto", 0, 1), "none");
  EXPECT_EQ(method("auto", 8193), "far:pi");
  EXPECT_EQ(method("auto(near=1k)", 8193), "far:pi(near=1024)");
  EXPECT_EQ(method("pro", 8193), "pro");
  EXPECT_EQ(made("auto", 4096).extension().method, "none");
  const Ladder ladder = made("auto(headroom=1.5)", 32768);
  EXPECT_EQ(ladder.longest(), 32768);
  EXPECT_EQ(ladder.headroom(), 1.5);

  for (const std::int64_t ctx : {32769, 100000, 131072}) {
    const Geometry geometry{.rotary_dim = 64, .base = 1e6, .train_length = 32768};
    const Ladder one = make_ladder(geometry, parse_method("auto"), ctx);
    EXPECT_EQ(one.longest(), ctx);
    EXPECT_EQ(one.rungs()[0].plan.extension().scale, 1);
    // The scale of the last rung, up to the rounding of its shift.
    const double room = (32768 - 2048) / 1.25;
    EXPECT_NEAR(one.rungs().back().plan.extension().scale, double(one.rungs().back().border) / room,
                1e-3);
  }
}

// Phi-3: two lists, the second up to 32 windows.
Geometry with_two_lists() {
  return {.rotary_dim = 8,
          .base = 1e4,
          .train_length = 4096,
          .trained_factor = {1, 1, 1.5, 2},
          .trained_attention_scale = 1.19,
          .long_factor = {1, 2, 6, 16},
          .long_length = 131072};
}

TEST(Vendor, IsTheLongListBeyondTheWindow) {
  const Geometry g = with_two_lists();
  const Ladder ladder = make_ladder(g, parse_method("elastic:vendor"), 131072);
  EXPECT_EQ(to_string(MethodSpec{ladder.extension().method, ladder.growth()}), "elastic:vendor");
  ASSERT_EQ(ladder.rungs().size(), 2u);
  EXPECT_EQ(ladder.rungs()[0].length, 4096);
  EXPECT_EQ(ladder.rungs()[0].plan.factor(), std::vector<double>(4, 1));
  EXPECT_EQ(ladder.rungs()[1].length, 131072);
  EXPECT_EQ(ladder.rungs()[1].plan.factor(), (std::vector<double>{1, 2, 4, 8}));
  EXPECT_EQ(ladder.rungs()[1].plan.attention_scale(), 1) << "the same on both sides";
  // Static it is what llama.cpp does: one list, by the size of the context.
  const auto fixed = [&](std::int64_t ctx) {
    return make_ladder(g, parse_method("vendor"), ctx).rungs().front().plan.factor().back();
  };
  EXPECT_EQ(fixed(4096), 1);
  EXPECT_EQ(fixed(4097), 8);
  // Parameters of growing contexts apply.
  const Ladder sharp =
      make_ladder(g, parse_method("elastic:vendor(rung_step=2,sharpen=0.5)"), 131072);
  EXPECT_EQ(sharp.rungs().size(), 6u);
  EXPECT_GT(sharp.rungs()[5].sharpness, sharp.rungs()[1].sharpness);
  EXPECT_TRUE(sharp.rungs()[1].plan.same_numbers(sharp.rungs()[5].plan));
}

TEST(Vendor, IsAutoAsFarAsTheListReaches) {
  const Geometry g = with_two_lists();
  const auto method = [&](const char* name, std::int64_t ctx,
                          std::optional<double> scale = std::nullopt) {
    return to_string(resolve_auto(g, parse_method(name), ctx, scale));
  };
  EXPECT_EQ(method("auto", 4096), "none");
  EXPECT_EQ(method("auto", 4097), "elastic:vendor");
  EXPECT_EQ(method("auto", 131072), "elastic:vendor");
  EXPECT_EQ(method("auto", 0, 32), "elastic:vendor");
  EXPECT_EQ(method("auto", 131073), "far:pi");
  EXPECT_EQ(method("auto(near=256)", 131072), "far:pi(near=256)");
  EXPECT_EQ(method("auto(headroom=1.5)", 131072), "far:pi(headroom=1.5)");
  EXPECT_EQ(static_method(g, 32), "vendor");
  EXPECT_NE(static_method(g, 33), "vendor");
  EXPECT_NE(static_method(g, 1), "vendor");
  EXPECT_EQ(make_ladder(g, parse_method("auto"), 131072).rungs().size(), 2u);
}

TEST(Vendor, RefusesModelsAndLengthsWithoutAList) {
  for (const std::int64_t ctx : {4096, 32768}) {
    for (const char* name : {"vendor", "elastic:vendor"}) {
      const Error e = test::error_of([&] { make_ladder(kGeometry, parse_method(name), ctx); });
      EXPECT_TRUE(contains(e.what(), "two lists of factors"));
      EXPECT_TRUE(contains(e.hint(), "--method auto"));
    }
  }
  Geometry g = with_two_lists();
  for (const char* name : {"vendor", "elastic:vendor"}) {
    EXPECT_ERROR(make_ladder(g, parse_method(name), 131073), usage, "131072 tokens", "131073");
  }
  EXPECT_ERROR(make_ladder(g, parse_method("elastic:vendor(headroom=1.25)"), 131072), usage,
               "163840");
  EXPECT_ERROR(make_ladder(g, parse_method("far:vendor"), 131072), usage, "far:vendor", "scale");
  EXPECT_ERROR(make_ladder(g, parse_method("vendor(factors=[1])"), 131072), usage, "factors");
  g.train_length = 131072;  // as a user may say
  EXPECT_ERROR(make_ladder(g, parse_method("elastic:vendor"), 262144), usage, "window of 131072");
}

// One rule for every length: a text that grows never meets another plan than one that was long from
// the start, and --ctx changes its last rung alone.
TEST(Far, DefaultsAreOneRuleForEveryLength) {
  const auto near = [](std::int64_t window, std::int64_t ctx) {
    const Geometry geometry{.rotary_dim = 64, .base = 1e6, .train_length = window};
    const Ladder ladder = make_ladder(geometry, parse_method("far:pro"), ctx);
    EXPECT_EQ(ladder.headroom(), 1.25);
    EXPECT_EQ(ladder.rung_step(), 1.42);
    EXPECT_EQ(ladder.sharpen(), default_sharpen(window));
    EXPECT_EQ(ladder.near()->length, ladder.near()->step);
    return ladder.near()->length;
  };
  EXPECT_EQ(near(512, 1024), 128);
  EXPECT_EQ(near(1024, 16384), 256);
  EXPECT_EQ(near(8192, 32768), 1024);
  EXPECT_EQ(near(8192, 131072), 1024);
  EXPECT_EQ(near(32768, 131072), 1024);
  EXPECT_EQ(near(131072, 1048576), 4096);
  for (const auto& [window, sharpen] :
       {std::pair(16, 0.05), {1024, 0.05}, {4096, 0.15}, {8192, 0.2}, {131072, 0.2}}) {
    EXPECT_DOUBLE_EQ(default_sharpen(window), sharpen);
  }
  // The border moves by as much as is near, at most by a quarter of the window.
  EXPECT_EQ(made("far:pi(near=64)", 32768).near()->step, 64);
  EXPECT_EQ(made("far:pi(near=6000)", 32768).near()->step, 2048);
  const Ladder shorter = made("auto", 40000);
  const Ladder longer = made("auto", 131072);
  for (std::int64_t n = 1; n <= 33000; n += 97) {
    const Rung& a = shorter.rungs()[shorter.rung_at(n)];
    const Rung& b = longer.rungs()[longer.rung_at(n)];
    ASSERT_EQ(std::tuple(a.border, a.shift, a.sharpness),
              std::tuple(b.border, b.shift, b.sharpness));
    ASSERT_EQ(a.plan.factor(), b.plan.factor());
  }
}

// What a note names can be typed: --method far:pi is the plan of auto at every length.
TEST(Auto, IsTheMethodThatItNames) {
  for (const std::int64_t window : {16, 512, 8192, 131072}) {
    const Geometry geometry{.rotary_dim = 64, .base = 1e6, .train_length = window};
    for (const double times : {0.5, 1.0, 1.001, 1.5, 2.0, 3.9, 4.0, 4.01, 5.0, 16.0, 1500.0}) {
      const std::int64_t ctx = std::llround(times * double(window));
      const MethodSpec asked = parse_method("auto");
      const std::string name = to_string(resolve_auto(geometry, asked, ctx));
      const auto digest = [&](const MethodSpec& method) {
        std::string text;
        for (const Rung& rung : make_ladder(geometry, method, ctx).rungs()) {
          text += cat(rung.length, " ", rung.border, " ", rung.shift);
          for (const double factor : rung.plan.factor()) text += cat(" ", factor);
        }
        return text;
      };
      EXPECT_EQ(digest(asked), digest(parse_method(name))) << name << " at " << ctx;
    }
  }
}

TEST(Far, TheBorderMovesByMoreWhereItWouldMoveTooOften) {
  EXPECT_EQ(made("far:pi", 8192 * 1023).near()->step, 2047);
  EXPECT_EQ(made("far:pi", 8192 * 1500).near()->step, 3001);
  EXPECT_EQ(made("auto", 8192 * 1500).longest(), 8192 * 1500);
}

TEST(MethodToLadder, RefusesWhatAMethodDoesNotUse) {
  const auto refused = [](const char* method, std::int64_t ctx, std::optional<double> scale,
                          const std::string& word) {
    test::expect_error(ErrorKind::usage, word, [&] {
      check_reach(parse_method(method), ctx, scale);
      made(method, ctx, scale);
    });
  };
  refused("pro(rung_step=1.5)", 32768, {}, "pro does not use rung_step");
  refused("elastic:pro(near=9)", 32768, {}, "elastic:pro does not use near");
  refused("pro(near_step=9)", 32768, {}, "pro does not use near_step");
  refused("elastic:pro", 0, 1e300, "1e+300");
  refused("elastic:pro", 0, {}, "no context length");
  refused("elastic:none", 32768, {}, "elastic:none is not possible");
  refused("elastic:NONE", 512, {}, "same at every length");
  refused("auto", 0, {}, "no context length");
  refused("auto", 32768, 4, "both set how far auto");
  refused("auto(low=5)", 4096, {}, "auto does not use low");
  refused("pro", 0, {}, "no context length or scale given for pro");
  refused("pro(headroom=0.5)", 32768, {}, "0.5");
  refused("prp", 32768, {}, "prp");
  refused("pro", 32768, 4, "ctx 32768 and scale 4");
  refused("pro", -1, {}, "-1");
}

}  // namespace
}  // namespace mrrope
