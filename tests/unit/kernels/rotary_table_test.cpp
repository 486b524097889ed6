// SPDX-License-Identifier: Apache-2.0
#include "kernels/half.h"
#include "models/rotary_trial.h"
#include "mrrope/rotary.h"
#include "support/test.h"

namespace mrrope {
namespace {

Plan plan_of(const char* method, double scale, int rotary_dim = 128,
             Pairing pairing = Pairing::halves) {
  return make_plan(
      {.rotary_dim = rotary_dim, .base = 1e4, .train_length = 4096, .pairing = pairing},
      {.method = method, .scale = scale});
}

double entry(const RotaryTable& table, std::int64_t position, int i) {
  const void* row = table.row(position);
  if (table.element() == Element::f32) return double(static_cast<const float*>(row)[i]);
  const std::uint16_t bits = static_cast<const std::uint16_t*>(row)[i];
  return double(table.element() == Element::f16 ? float_from_f16(bits) : float_from_bf16(bits));
}

// Against the reference, which works in long double: rounded once and no more. The double below
// the rounding may be off by a few of its own steps, which decides ties only.
TEST(RotaryTable, EntriesAreRoundedOnce) {
  const Plan plan = plan_of("pro", 8);
  for (const Element element : {Element::f32, Element::f16, Element::bf16}) {
    for (const std::int64_t position : {0, 1, 255, 256, 4095, 39001, 131071, 1048575, 2147483646}) {
      const RotaryTable table(plan, position, position + 1, element);
      const std::vector<double> want = test::rotated_unit(plan)(position);
      for (int i = 0; i < 128; ++i) {
        // A double theta is off by 2^-53 of itself at most, but that is the plan's; what is added
        // here is below 1e-14.
        const double bound = std::abs(want[i]) * test::rounding(element) + 1e-14 +
                             (element == Element::f16 ? 0x1p-25 : 0);
        EXPECT_NEAR(entry(table, position, i), want[i], bound) << position << " " << i;
      }
    }
  }
}

TEST(RotaryTable, FoldsInBothAttentionScales) {
  Geometry g{.rotary_dim = 4, .base = 1e4, .train_length = 4096, .trained_attention_scale = 2};
  const RotaryTable table(make_plan(g, {}), 0, 1);
  EXPECT_EQ(entry(table, 0, 0), 2);
  EXPECT_EQ(entry(table, 0, 2), 0);
  EXPECT_EQ(table.scale(), 2);
}

TEST(RotaryTable, GrownTableEqualsOneMadeAtOnce) {
  const Plan plan = plan_of("yarn", 4, 20);
  for (const std::int64_t first : {0, 100, 300}) {
    const RotaryTable whole(plan, first, first + 1100, Element::f16);
    RotaryTable grown(plan, first, first, Element::f16);
    for (const std::int64_t end : {1, 2, 200, 199, 256, 257, 800, 1100}) grown.grow(first + end);
    EXPECT_EQ(grown.end(), first + 1100);
    EXPECT_EQ(std::memcmp(whole.row(first), grown.row(first), 1100 * 20 * 2), 0);
  }
}

TEST(RotaryTable, ManyThreadsCanRead) {
  const Plan plan = plan_of("pro", 8);
  const RotaryTable table(plan, 0, 64);
  std::atomic<int> agreed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      test::Trial trial({.tokens = 64}, unsigned(i));
      rotate(table, trial.batch);
      agreed +=
          trial.judge(Pairing::halves, 128, test::rounding(Element::f32), test::rotated_unit(plan))
              .empty();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(agreed, 4);
}

TEST(RotaryTable, TurningIsTheDifferenceOfTwoPlans) {
  const Plan a = plan_of("yarn", 4);
  const Plan b = plan_of("pro", 16);
  const RotaryTable table = RotaryTable::turning(a, b, 0, 131072);
  for (const std::int64_t position : {0, 1, 4095, 131071}) {
    const std::vector<double> want = test::turned_unit(a, b)(position);
    for (int i = 0; i < 128; ++i) {
      // The difference of two thetas is rounded: position * 2^-53 of an angle.
      EXPECT_NEAR(entry(table, position, i), want[i], std::abs(want[i]) * 0x1p-24 + 1e-10);
    }
  }
}

TEST(RotaryTable, PhasesAreTurnsAtPositionZero) {
  const Plan plan = plan_of("pro", 16);
  const RotaryTable plain(plan, 0, 70000);
  RotaryAngles angles = plain.angles();
  for (std::size_t i = 0; i < angles.theta.size(); ++i) angles.phase[i] = 5000 * angles.theta[i];
  const RotaryTable table(angles, 0, 65000);
  for (const std::int64_t position : {0, 1, 255, 256, 4095, 64999}) {
    for (int i = 0; i < 128; ++i) {
      // A phase is rounded: 2^-53 of at most 5000 radians. Both tables round to f32, up to 1.3
      // here.
      EXPECT_NEAR(entry(table, position, i), entry(plain, position + 5000, i), 0x1p-23 + 1e-12);
    }
  }
}

TEST(RotaryTable, RefusesWhatItCannotHold) {
  const Plan plan = plan_of("pro", 8);
  EXPECT_ERROR(RotaryTable(plan, -1, 5), usage, "-1");
  EXPECT_ERROR(RotaryTable(plan, 6, 5), usage, "6 to 5");
  EXPECT_ERROR(RotaryTable(plan, 0, (std::int64_t(1) << 31) + 1), usage, "2147483649");
  EXPECT_ERROR(RotaryTable(plan, 0, 1, Element(7)), usage, "element 7");
  RotaryTable table(plan, 0, 5);
  EXPECT_ERROR(table.grow((std::int64_t(1) << 31) + 1), usage, "2147483649");
  EXPECT_EQ(table.end(), 5);
  EXPECT_ERROR(static_cast<void>(
                   RotaryTable::turning(plan, plan_of("pro", 8, 128, Pairing::interleaved), 0, 1)),
               usage, "cannot turn keys");
  EXPECT_ERROR(static_cast<void>(RotaryTable::turning(plan, plan_of("pro", 8, 64), 0, 1)), usage,
               "rotary_dim 64");
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(f16_from(1.0f), 0x3c00);
  EXPECT_EQ(f16_from(-2.0f), 0xc000);
  EXPECT_EQ(f16_from(65504.0f), 0x7bff);
  EXPECT_EQ(f16_from(65519.0f), 0x7bff);
  EXPECT_EQ(f16_from(65520.0f), 0x7c00);
  EXPECT_EQ(f16_from(0x1p-24f), 0x0001);
  EXPECT_EQ(f16_from(0x1p-25f), 0x0000);  // a tie, to even
  EXPECT_EQ(f16_from(0x1.8p-24f), 0x0002);
  EXPECT_EQ(f16_from(1 + 0x1p-11f), 0x3c00);
  EXPECT_EQ(f16_from(1 + 0x1.8p-10f), 0x3c02);
  EXPECT_EQ(f16_from(std::nanf("")) & 0x7e00, 0x7e00);
  EXPECT_EQ(f16_from(INFINITY), 0x7c00);
  EXPECT_EQ(bf16_from(1.0f), 0x3f80);
  EXPECT_EQ(bf16_from(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(bf16_from(1 + 0x1.8p-7f), 0x3f82);
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from(std::nanf("")))));
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float a = float_from_f16(std::uint16_t(bits));
    const float b = float_from_bf16(std::uint16_t(bits));
    EXPECT_TRUE(std::isnan(a) || f16_from(a) == bits) << bits;
    EXPECT_TRUE(std::isnan(b) || bf16_from(b) == bits) << bits;
  }
}

}  // namespace
}  // namespace mrrope
