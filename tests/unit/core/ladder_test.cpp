// SPDX-License-Identifier: Apache-2.0
#include "mrrope/ladder.h"

#include <gtest/gtest.h>

#include "mrrope/error.h"

namespace mrrope {
namespace {

const Geometry kTiny{.rotary_dim = 128, .base = 1e4, .train_length = 1024};

LadderRequest request(double step, double headroom, std::int64_t longest) {
  LadderRequest r;
  r.extension.method = "pro";
  r.rung_step = step;
  r.headroom = headroom;
  r.longest = longest;
  return r;
}

TEST(Ladder, LeavesTheModelUntouchedInsideItsWindow) {
  const Ladder ladder = make_ladder(kTiny, request(1.19, 1, 16384));
  EXPECT_EQ(ladder.rungs().front().length, 1024);
  EXPECT_EQ(ladder.rungs().front().plan.extension().method, "none");
  EXPECT_EQ(ladder.rung_at(1), 0u);
  EXPECT_EQ(ladder.rung_at(1024), 0u);
  EXPECT_EQ(ladder.rung_at(1025), 1u);
}

TEST(Ladder, GrowsByItsStepAndEndsAtTheWantedLength) {
  const Ladder ladder = make_ladder(kTiny, request(2, 1.25, 10000));
  std::vector<std::int64_t> lengths;
  for (const Rung& r : ladder.rungs()) lengths.push_back(r.length);
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{1024, 2048, 4096, 8192, 10000}));
  EXPECT_EQ(ladder.longest(), 10000);
  for (std::size_t i = 1; i < lengths.size(); ++i) {
    EXPECT_DOUBLE_EQ(ladder.rungs()[i].plan.extension().scale, 1.25 * double(lengths[i]) / 1024);
  }
  EXPECT_EQ(make_ladder(kTiny, request(1.19, 1, 16384)).rungs().size(), 17u);
}

TEST(Ladder, EndsExactlyAtARungBoundary) {
  const Ladder ladder = make_ladder(kTiny, request(2, 1, 4096));
  EXPECT_EQ(ladder.rungs().size(), 3u);
  EXPECT_EQ(ladder.rung_at(4096), 2u);
  EXPECT_THROW(ladder.rung_at(4097), Error);
}

TEST(Ladder, InsideTheWindowIsOneRung) {
  const Ladder ladder = make_ladder(kTiny, request(1.19, 1, 500));
  EXPECT_EQ(ladder.rungs().size(), 1u);
  EXPECT_FALSE(ladder.elastic());
}

TEST(Ladder, DynamicNtkGrowsByLength) {
  LadderRequest r = request(2, 1, 4096);
  r.extension.method = "dynamic-ntk";
  const Ladder ladder = make_ladder(kTiny, r);
  EXPECT_DOUBLE_EQ(ladder.rungs().back().plan.factor().back(), 4);
  EXPECT_EQ(ladder.rungs().back().plan.extension().scale, 1);
}

TEST(Ladder, RefusesInvalidStepsHeadroomsAndLengths) {
  for (const double step : {1.0, 0.5, 1.001, -2.0, 0.0 / 0.0}) {
    EXPECT_THROW(make_ladder(kTiny, request(step, 1, 8192)), Error) << step;
  }
  for (const double headroom : {0.9, 0.0, -1.0, 0.0 / 0.0}) {
    try {
      make_ladder(kTiny, request(1.19, headroom, 8192));
      ADD_FAILURE() << headroom;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("collapses"), std::string::npos);
    }
  }
  EXPECT_THROW(make_ladder(kTiny, request(1.19, 1, 0)), Error);
  EXPECT_THROW(make_ladder(make_plan(kTiny, {}), 0), Error);
}

}  // namespace
}  // namespace mrrope
