// SPDX-License-Identifier: Apache-2.0
#include "eval/stats/verdict.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mrrope::eval {
namespace {

// Bands from perplexities, the same in three documents but for a small spread.
VerdictInput input(const std::vector<double>& bands, double own = 4, double spread = 0.01) {
  VerdictInput in;
  in.method = "m";
  in.window = 1024;
  in.lengths = {512, 1024, 2048, 4096, 8192};
  in.reference_length = 1024;
  const auto losses = [&](double perplexity) {
    const double x = std::log(perplexity);
    return UnitValues{{{0, 0}, x - spread}, {{1, 0}, x}, {{2, 0}, x + spread}};
  };
  for (const double b : bands) in.bands.push_back(losses(b));
  in.untouched = losses(4);
  in.own = losses(own);
  return in;
}

TEST(Verdict, FallingBandsAreGoodToTheEnd) {
  const Verdict v = judge(input({6, 4, 3.9, 3.8, 3.7}));
  EXPECT_TRUE(v.judged);
  EXPECT_EQ(v.good_to, 8192);
  EXPECT_TRUE(v.to_the_end);
}

TEST(Verdict, CollapseEndsIt) {
  const Verdict v = judge(input({6, 4, 3.9, 3.8, 30}));
  EXPECT_EQ(v.good_to, 4096);
  EXPECT_FALSE(v.to_the_end);
  EXPECT_NE(v.reason.find("tokens 4k to 8k"), std::string::npos) << v.reason;
}

TEST(Verdict, RiseUpToTheUntouchedLevelIsAllowed) {
  const Verdict v = judge(input({6, 4, 3.2, 3.4, 4.3}));  // untouched: 4
  EXPECT_EQ(v.good_to, 8192);
  EXPECT_TRUE(v.to_the_end);
  EXPECT_EQ(judge(input({6, 4, 3.2, 3.4, 4.5})).good_to, 4096);
}

TEST(Verdict, SteadyButBadIsNotGood) {
  const Verdict v = judge(input({200, 180, 119, 105, 94}));
  EXPECT_TRUE(v.judged);
  EXPECT_EQ(v.good_to, 0);
  EXPECT_NE(v.reason.find("untouched"), std::string::npos) << v.reason;
}

TEST(Verdict, CostOnShortTextsIsStatedSeparately) {
  const Verdict v = judge(input({8, 6, 5.2, 4.5, 4.2}, 6));  // too high at 2k, fine at 8k
  EXPECT_EQ(v.good_to, 8192);
  EXPECT_NEAR(v.cost.percent().value, 50, 1e-6);
}

TEST(Verdict, TheUntouchedModelIsGoodToItsWindow) {
  VerdictInput in = input({6, 4, 300, 400, 500});
  EXPECT_EQ(judge(in).good_to, 0);
  in.is_untouched = true;
  EXPECT_EQ(judge(in).good_to, 1024);
}

TEST(Verdict, RiseWithinTheNoiseDoesNotEndIt) {
  VerdictInput in = input({6, 4, 3.6, 3.5, 3.5});
  in.bands[4] = {{{0, 0}, std::log(3.0)},
                 {{1, 0}, std::log(3.5)},
                 {{2, 0}, std::log(5.5)}};  // mean 3.87: +10.5 %, error 18 %
  EXPECT_EQ(judge(in).good_to, 8192);
  in.bands[4] = {{{0, 0}, std::log(4.5)}, {{1, 0}, std::log(4.5)}, {{2, 0}, std::log(4.51)}};
  EXPECT_EQ(judge(in).good_to, 4096);
}

TEST(Verdict, OneDocumentIsJudgedByTheFigureAlone) {
  VerdictInput in = input({6, 4, 3.9, 3.8, 30});
  const auto first_alone = [](UnitValues& units) { units.erase(++units.begin(), units.end()); };
  for (UnitValues& band : in.bands) first_alone(band);
  first_alone(*in.untouched);
  first_alone(in.own);
  EXPECT_EQ(judge(in).good_to, 4096);
}

TEST(Verdict, SaysWhatIsMissing) {
  VerdictInput in = input({6, 4, 3.9, 3.8, 3.7});
  in.untouched.reset();
  EXPECT_FALSE(judge(in).judged);
  EXPECT_NE(judge(in).reason.find("none"), std::string::npos);
  in = input({6, 4, 3.9, 3.8, 3.7});
  in.reference_length = 0;
  EXPECT_FALSE(judge(in).judged);
  in = input({6, 4});
  in.lengths = {512, 1024};
  EXPECT_FALSE(judge(in).judged);
  EXPECT_NEAR(judge(in).cost.percent().value, 0, 1e-9);
}

TEST(Verdict, NoneWithoutData) {
  VerdictInput in = input({6, 4, 3.9, 3.8, 3.7});
  for (std::size_t l = 2; l < in.bands.size(); ++l) in.bands[l].clear();
  EXPECT_FALSE(judge(in).judged);
  EXPECT_NE(judge(in).reason.find("no document"), std::string::npos);
  in.is_untouched = true;
  EXPECT_FALSE(judge(in).judged);
  in.is_untouched = false;
  in.failed = true;  // a collapse is data
  EXPECT_TRUE(judge(in).judged);
  EXPECT_EQ(judge(in).good_to, 0);
}

TEST(Verdict, ShortDocumentsAreExcluded) {
  VerdictInput in = input({6, 4, 3.9, 3.8, 3.7});
  in.bands[4].clear();
  EXPECT_EQ(judge(in).good_to, 4096);
  EXPECT_NE(judge(in).reason.find("no document"), std::string::npos);
}

}  // namespace
}  // namespace mrrope::eval
