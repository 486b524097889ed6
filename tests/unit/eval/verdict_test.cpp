// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/perplexity/perplexity.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

// A method with these perplexities of bands, the same in three documents but for a small spread,
// and its own inside the window; and the untouched model.
struct Measured : ResultTable {
  explicit Measured(const std::vector<double>& bands, double own = 4) {
    task = "ppl";
    window = 1024;
    lengths = {512, 1024, 2048, 4096, 8192};
    lengths.resize(bands.size());
    methods = {{"m", ""}, {"none", "", 1, true}};
    for (std::size_t i = 0; i < bands.size(); ++i)
      add("m", lengths[i], "perplexity_band", bands[i]);
    add("m", 1024, "perplexity", own);
    add("none", 1024, "perplexity", 4);
  }
  void add(const char* method, std::int64_t length, const char* name, double perplexity) {
    constexpr double kSpread = 0.01;
    const double x = std::log(perplexity);
    const UnitValues losses = {{{0, 0}, x - kSpread}, {{1, 0}, x}, {{2, 0}, x + kSpread}};
    rows.push_back({"ppl", method, length, {}, name, {}, losses});
  }
  UnitValues& band(std::size_t i) { return rows[i].units; }
};

Verdict judged(const Measured& table, bool failed = false) {
  return judge(table, table.methods[0], failed);
}

TEST(Verdict, IsGoodAsFarAsItsBandsAre) {
  struct Case {
    std::vector<double> bands;
    std::int64_t good_to;
    const char* reason;
  };
  for (const Case& c : {Case{{6, 4, 3.9, 3.8, 3.7}, 8192, ""},
                        {{6, 4, 3.9, 3.8, 30}, 4096, "tokens 4k to 8k"},
                        // A rise up to the level of the untouched model, 4, is allowed.
                        {{6, 4, 3.2, 3.4, 4.3}, 8192, ""},
                        {{6, 4, 3.2, 3.4, 4.5}, 4096, "tokens 4k to 8k"},
                        // Steady but bad.
                        {{200, 180, 119, 105, 94}, 0, "unmodified"}}) {
    const Verdict v = judged(Measured(c.bands));
    EXPECT_TRUE(v.judged);
    EXPECT_EQ(v.good_to, c.good_to);
    EXPECT_EQ(v.to_the_end, c.good_to == 8192);
    EXPECT_TRUE(contains(v.reason, c.reason));
  }
}

TEST(Verdict, CostOnShortTextsIsStatedSeparately) {
  const Verdict v = judged(Measured({8, 6, 5.2, 4.5, 4.2}, 6));  // too high at 2k, fine at 8k
  EXPECT_EQ(v.good_to, 8192);
  EXPECT_NEAR(v.cost.percent().value, 50, 1e-6);
}

TEST(Verdict, TheUntouchedModelIsGoodToItsWindow) {
  Measured in({6, 4, 300, 400, 500});
  EXPECT_EQ(judged(in).good_to, 0);
  in.methods[0].untouched = true;
  EXPECT_EQ(judged(in).good_to, 1024);
}

TEST(Verdict, RiseWithinTheNoiseDoesNotEndIt) {
  Measured in({6, 4, 3.6, 3.5, 3.5});
  in.band(4) = {{{0, 0}, std::log(3.0)},
                {{1, 0}, std::log(3.5)},
                {{2, 0}, std::log(5.5)}};  // mean 3.87: +10.5 %, error 18 %
  EXPECT_EQ(judged(in).good_to, 8192);
  in.band(4) = {{{0, 0}, std::log(4.5)}, {{1, 0}, std::log(4.5)}, {{2, 0}, std::log(4.51)}};
  EXPECT_EQ(judged(in).good_to, 4096);
}

TEST(Verdict, OneDocumentIsJudgedByTheFigureAlone) {
  Measured in({6, 4, 3.9, 3.8, 30});
  for (ResultRow& row : in.rows) row.units.erase(++row.units.begin(), row.units.end());
  EXPECT_EQ(judged(in).good_to, 4096);
}

TEST(Verdict, SaysWhatIsMissing) {
  Measured in({6, 4, 3.9, 3.8, 3.7});
  in.methods.pop_back();
  EXPECT_FALSE(judged(in).judged);
  EXPECT_TRUE(contains(judged(in).reason, "none"));
  in.methods[0].grows = true;  // the untouched model inside the window
  EXPECT_TRUE(judged(in).judged);
  in.window = 256;
  EXPECT_FALSE(judged(in).judged);
  const Measured inside({6, 4});
  EXPECT_FALSE(judged(inside).judged);
  EXPECT_NEAR(judged(inside).cost.percent().value, 0, 1e-9);
}

TEST(Verdict, NoneWithoutData) {
  Measured in({6, 4, 3.9, 3.8, 3.7});
  for (std::size_t i = 2; i < in.lengths.size(); ++i) in.band(i).clear();
  EXPECT_FALSE(judged(in).judged);
  EXPECT_TRUE(contains(judged(in).reason, "no document"));
  EXPECT_TRUE(judged(in, true).judged);  // a collapse is data
  EXPECT_EQ(judged(in, true).good_to, 0);
  in.methods[0].untouched = true;
  EXPECT_FALSE(judged(in).judged);
}

TEST(Verdict, ShortDocumentsAreExcluded) {
  Measured in({6, 4, 3.9, 3.8, 3.7});
  in.band(4).clear();
  EXPECT_EQ(judged(in).good_to, 4096);
  EXPECT_TRUE(contains(judged(in).reason, "no document"));
}

}  // namespace
}  // namespace mrrope::eval
