// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"
#include "tune/space.h"

namespace mrrope::tune {
namespace {

const std::vector<SearchAxis> kAxes = {{-2, 2, 0.4}, {0, 20, 3}, {0, 1, 0.1}};

// A valley whose second axis is a staircase, as boundaries are.
double valley(const std::vector<double>& x) {
  const double stair = std::round(x[1]);
  return std::pow(x[0] - 0.7, 2) + 0.01 * std::pow(stair - 13, 2) + 4 * std::pow(x[2] - 0.3, 2) +
         0.02 * x[0] * (stair - 13);
}

TEST(Refine, FindsTheBottomOfAStaircaseInFewCalls) {
  int calls = 0;
  double best = 1e9;
  refine(kAxes, {-0.5, 8, 0.6}, [&](const std::vector<double>& x) -> std::optional<double> {
    ++calls;
    best = std::min(best, valley(x));
    return valley(x);
  });
  EXPECT_LT(best, 0.03);
  EXPECT_LT(calls, 60);
}

TEST(Refine, StaysInsideTheBoundsAndStopsOnRequest) {
  int calls = 0;
  refine(kAxes, {9, 8, 0.6}, [&](const std::vector<double>& x) -> std::optional<double> {
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_GE(x[i], kAxes[i].lower);
      EXPECT_LE(x[i], kAxes[i].upper);
    }
    if (++calls > 5) return std::nullopt;
    return valley(x);
  });
  EXPECT_EQ(calls, 6);
}

TEST(Refine, PropagatesExceptions) {
  EXPECT_THROW(refine(kAxes, {0, 8, 0.6},
                      [](const std::vector<double>&) -> std::optional<double> {
                        throw std::runtime_error("no");
                      }),
               std::runtime_error);
}

}  // namespace
}  // namespace mrrope::tune
