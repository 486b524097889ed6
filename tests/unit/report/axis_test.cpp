// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "report/charts/chart.h"

namespace mrrope::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<double>::max();

std::string texts(const std::vector<Tick>& ticks) {
  std::string out;
  for (const Tick& t : ticks) out += (out.empty() ? "" : " ") + t.text;
  return out;
}

Range range(double low, double high, Spacing spacing = Spacing::linear) {
  return {low, high, spacing};
}

TEST(Axis, TicksAreRoundNumbersInsideTheRange) {
  EXPECT_EQ(texts(ticks_of(range(0, 1), {}, 6)), "0 0.2 0.4 0.6 0.8 1");
  EXPECT_EQ(texts(ticks_of(range(-3, 17), {}, 5)), "0 5 10 15");
  EXPECT_EQ(texts(ticks_of(range(0.00012, 0.00031), {}, 5)), "0.00015 0.0002 0.00025 0.0003");
}

TEST(Axis, LogTicksAreDecadesAndSubdivisions) {
  const Axis log{"", Spacing::log, false};
  EXPECT_EQ(texts(ticks_of(range(3.5, 320, Spacing::log), log, 8)), "5 10 20 50 100 200");
  EXPECT_EQ(texts(ticks_of(range(1, 1e9, Spacing::log), log, 5)), "1 100 10000 1000000 1e8");
}

// 1, 2 and 5 alone would leave one tick.
TEST(Axis, ShortLogRangeHasEvenTicks) {
  const Axis log{"", Spacing::log, false};
  EXPECT_EQ(texts(ticks_of(range(4.3, 6.6, Spacing::log), log, 6)), "4.5 5 5.5 6 6.5");
}

TEST(Axis, LengthsAreLabelledAsTyped) {
  const Axis tokens{"", Spacing::log, true};
  EXPECT_EQ(texts(ticks_of(range(512, 131072, Spacing::log), tokens, 10)),
            "512 1k 2k 4k 8k 16k 32k 64k 128k");
  EXPECT_EQ(texts(ticks_of(range(512, 131072, Spacing::log), tokens, 5)), "512 2k 8k 32k 128k");
}

TEST(Axis, NeverMoreTicksThanRequested) {
  for (const int most : {2, 3, 5, 9}) {
    for (const auto& r : {range(0, 1), range(-1e9, 3), range(-kLargest, kLargest), range(7, 7.5),
                          range(1e-300, 1e300, Spacing::log), range(1, 1.5, Spacing::log)}) {
      for (const bool tokens : {false, true}) {
        const auto ticks = ticks_of(r, {"", r.spacing, tokens}, most);
        EXPECT_LE(ticks.size(), std::size_t(most));
        for (const Tick& t : ticks) {
          EXPECT_GE(r.place(t.value), -1e-6);
          EXPECT_LE(r.place(t.value), 1 + 1e-6);
        }
      }
    }
  }
}

TEST(Axis, RangesOfUnusualData) {
  EXPECT_EQ(range_of({}, Spacing::linear).high, 1);
  EXPECT_EQ(range_of({}, Spacing::log).low, 1);
  const std::vector<double> odd = {kNan, kInfinite, -kInfinite};
  EXPECT_EQ(range_of(odd, Spacing::linear).low, 0);
  const std::vector<double> one = {5};
  EXPECT_LT(range_of(one, Spacing::linear).low, 5);
  EXPECT_GT(range_of(one, Spacing::log).high, 5);
  const std::vector<double> below = {-4, 0, 3};
  EXPECT_LT(range_of(below, Spacing::log).low, 3);
  EXPECT_GT(range_of(below, Spacing::log).low, 0);
  const std::vector<double> enormous = {-kLargest, kLargest};
  const Range r = range_of(enormous, Spacing::linear);
  EXPECT_DOUBLE_EQ(r.place(0), 0.5);
  EXPECT_DOUBLE_EQ(r.place(kLargest), 1);
  const std::vector<double> top = {kLargest};
  EXPECT_TRUE(std::isfinite(range_of(top, Spacing::linear).high));
  EXPECT_TRUE(std::isfinite(range_of(top, Spacing::log).high));
  EXPECT_LT(range_of(top, Spacing::log).low, range_of(top, Spacing::log).high);
}

TEST(Axis, PlaceIsNanOutsideTheDomain) {
  EXPECT_TRUE(std::isnan(range(0, 1).place(kNan)));
  EXPECT_TRUE(std::isnan(range(1, 2, Spacing::log).place(0)));
  EXPECT_TRUE(std::isnan(range(1, 2, Spacing::log).place(-1)));
  EXPECT_DOUBLE_EQ(range(1, 100, Spacing::log).place(10), 0.5);
}

TEST(Axis, FormatsValues) {
  EXPECT_EQ(value_text(kNan), "-");
  EXPECT_EQ(value_text(0), "0");
  EXPECT_EQ(value_text(4.32412), "4.324");
  EXPECT_EQ(value_text(1234.56), "1234.6");
  EXPECT_EQ(value_text(131072), "131072");
  EXPECT_EQ(value_text(2.5e12), "2.5e12");
  EXPECT_EQ(value_text(1.25e-7), "1.25e-7");
  EXPECT_EQ(value_text(-kInfinite), "-infinite");
}

}  // namespace
}  // namespace mrrope::report
