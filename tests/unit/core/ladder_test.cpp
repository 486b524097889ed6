// SPDX-License-Identifier: Apache-2.0
#include "mrrope/ladder.h"

#include "core/methods.h"
#include "support/test.h"

namespace mrrope {
namespace {

const Geometry kTiny{.rotary_dim = 128, .base = 1e4, .train_length = 1024};

Ladder pro(double step, double headroom, std::int64_t longest) {
  MethodSpec method{"pro", Growth::elastic};
  method.parameters.rung_step = step;
  method.parameters.headroom = headroom;
  return make_ladder(kTiny, method, longest);
}

TEST(Ladder, GrowsByItsStep) {
  const Ladder ladder = pro(2, 1.25, 10000);
  std::vector<std::int64_t> lengths;
  for (const Rung& r : ladder.rungs()) lengths.push_back(r.length);
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{1024, 2048, 4096, 8192, 10000}));
  for (std::size_t i = 1; i < lengths.size(); ++i) {
    EXPECT_DOUBLE_EQ(ladder.rungs()[i].plan.extension().scale, 1.25 * double(lengths[i]) / 1024);
  }
  EXPECT_THROW(make_ladder(make_plan(kTiny, {}), -1), Error);
}

TEST(Ladder, SharpensQueriesBeyondTheWindow) {
  const Ladder blunt =
      make_ladder(kTiny, parse_method("far:pi(near=200,near_step=60,sharpen=0)"), 16384);
  for (const Rung& rung : blunt.rungs()) EXPECT_EQ(rung.sharpness, 1);
  for (const char* method :
       {"far:pi(near=200,near_step=60,sharpen=0.5)", "elastic:pro(sharpen=0.5)"}) {
    const Ladder ladder = make_ladder(kTiny, parse_method(method), 16384);
    EXPECT_EQ(ladder.sharpen(), 0.5);
    EXPECT_EQ(ladder.rungs().front().sharpness, 1);
    for (std::size_t i = 1; i + 1 < ladder.rungs().size(); ++i) {
      const Rung& rung = ladder.rungs()[i];
      std::size_t last = i;  // with the same plan: the border may move on the way
      while (last + 1 < ladder.rungs().size() &&
             ladder.rungs()[last + 1].plan.extension() == rung.plan.extension()) {
        ++last;
      }
      const double n = double(ladder.rungs()[last].length);
      const double g = 0.5 * std::log2(n / 1024);
      EXPECT_DOUBLE_EQ(rung.sharpness, std::pow(std::log(n) / std::log(1024.0), g)) << n;
      EXPECT_EQ(ladder.can_batch_together(i, i + 1),
                rung.sharpness == ladder.rungs()[i + 1].sharpness);
    }
  }
  // Where the text may end does not matter before its last rung.
  const MethodSpec far = parse_method("far:pi(near=200,near_step=60,rung_step=2,sharpen=1)");
  const Ladder shorter = make_ladder(kTiny, far, 5000);
  const Ladder longer = make_ladder(kTiny, far, 6000);
  for (std::int64_t n = 1; n <= 4096; ++n) {
    ASSERT_EQ(shorter.rungs()[shorter.rung_at(n)].sharpness,
              longer.rungs()[longer.rung_at(n)].sharpness);
  }
}

MethodSpec near_method(const char* name, NearPart near, double headroom = 1.25) {
  MethodSpec method{name, Growth::far};
  method.parameters.rung_step = 1.5;
  method.parameters.headroom = headroom;
  method.parameters.near = double(near.length);
  method.parameters.near_step = double(near.step);
  return method;
}

TEST(NearPart, BorderIsAFunctionOfTheLength) {
  const NearPart near{200, 60};
  const Ladder ladder = make_ladder(kTiny, near_method("pi", near), 16384);
  EXPECT_EQ(ladder.rungs().front().length, 1024);
  EXPECT_EQ(ladder.rungs().front().border, 0);
  for (std::int64_t n = 1025; n <= 16384; ++n) {
    const Rung& rung = ladder.rungs()[ladder.rung_at(n)];
    ASSERT_EQ(rung.border, 60 * ((n - 200) / 60)) << n;
    ASSERT_GE(n - rung.border, 200);
    ASSERT_LT(n - rung.border, 260);
  }
}

TEST(NearPart, ScaleChangesAtRungsOnlyAndFillsTheWindow) {
  const NearPart near{256, 256};
  for (const char* method : {"pi", "pro"}) {
    const Ladder ladder = make_ladder(kTiny, near_method(method, near), 16384);
    EXPECT_EQ(ladder.has_single_factor(), std::string(method) == "pi");
    const Ladder grown = pro(1.5, 1, 16384);
    for (const Rung& rung : ladder.rungs()) {
      if (rung.border == 0) continue;
      // The largest border of the elastic rung that this length is on.
      const std::int64_t end = grown.rungs()[grown.rung_at(rung.length)].length;
      const double border = 256.0 * double((end - 256) / 256);
      const double scale = std::max(1.0, 1.25 * border / 512);
      EXPECT_NEAR(rung.plan.extension().scale, scale,
                  ladder.has_single_factor() ? 0.01 * scale : 1e-12);
      // The oldest key, in the slowest pair, is seen inside the window.
      const double seen =
          double(rung.length - 1 - rung.border) + double(rung.border) / rung.plan.factor().back();
      EXPECT_LE(seen, 1024);
    }
  }
}

TEST(NearPart, ShiftKeepsRotationsInsideTheWindow) {
  const Ladder ladder = make_ladder(kTiny, near_method("pi", {256, 256}, 1.6), 16384);
  for (const Rung& rung : ladder.rungs()) {
    if (rung.border == 0) continue;
    const double s = rung.plan.factor().front();
    EXPECT_EQ(rung.shift, std::llround(double(rung.border) * (1 - 1 / s)));
    EXPECT_LT(rung.length - 1 - rung.shift, 1024);
  }
  // With pairs of different factors nothing is shifted.
  for (const Rung& rung : make_ladder(kTiny, near_method("pro", {256, 256}), 16384).rungs()) {
    EXPECT_EQ(rung.shift, 0);
  }
}

TEST(NearPart, SeesNearKeysAtTheirDistanceAndFarOnesCompressed) {
  const Ladder far = make_ladder(kTiny, near_method("pro", {256, 256}), 16384);
  const Rung& last = far.rungs().back();
  EXPECT_EQ(seen_distance(far, 16383, 16383 - 255, 63), 255);
  EXPECT_EQ(seen_distance(far, 16383, last.border, 63), double(16383 - last.border));
  EXPECT_DOUBLE_EQ(seen_distance(far, 16383, 0, 63),
                   double(16383 - last.border) + double(last.border) / last.plan.factor()[63]);
  EXPECT_DOUBLE_EQ(seen_distance(far, 16383, 0, 0), 16383);  // pro leaves the fastest pair alone
  EXPECT_EQ(seen_distance(far, 1000, 0, 63), 1000);
  // The shift is rounded.
  const Ladder shifted = make_ladder(kTiny, near_method("pi", {256, 256}), 16384);
  const Rung& end = shifted.rungs().back();
  EXPECT_NEAR(seen_distance(shifted, 16383, 0, 0),
              double(16383 - end.border) + double(end.border) / end.plan.factor()[0], 0.5);
  EXPECT_DOUBLE_EQ(seen_distance(pro(2, 1, 4096), 4095, 0, 63), 4095 / 4.0);
}

}  // namespace
}  // namespace mrrope
