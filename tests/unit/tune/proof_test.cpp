// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tune/search.h"

namespace mrrope::tune {
namespace {

struct Case {
  eval::ResultTable ppl;
  eval::ResultTable needle;

  Case() {
    ppl.task = "ppl";
    ppl.lengths = {1024, 4096};
    ppl.window = 1024;
    ppl.logarithmic = true;
    needle.task = "needle";
    needle.lengths = {4096};
    add("tuned", 1.5, 1.4, 0.8, 0);
  }
  // Three documents: the loss of a row, with the same spread for every row.
  void add_losses(const std::string& method, double at_window, double at_end) {
    ppl.methods.push_back({method, "", 1});
    const auto put = [&](std::int64_t length, double loss) {
      const eval::UnitValues units = {
          {{0, 0}, loss - 0.1}, {{1, 0}, loss + 0.001}, {{2, 0}, loss + 0.1}};
      add_row(ppl, "ppl", method, length, "perplexity", units);
    };
    put(1024, at_window);
    put(4096, at_end);
  }
  // difference: of the needles found, tuned minus this one's, with an error of 0.02.
  void add(const std::string& method, double at_window, double at_end, double share,
           double difference) {
    add_losses(method, at_window, at_end);
    needle.rows.push_back({"needle", method, 4096, {}, "contains", {share, 0.02, 100}});
    if (method != "tuned") {
      const eval::PairedDifference found{{-difference, 0.02, 100}, 0.01};
      needle.comparisons.push_back({4096, method, "tuned", found, 0.01});
    }
  }
  Proof judge() const { return judge_proof(ppl, needle, "tuned", 0.05); }
};

TEST(Proof, BeatsPlansWithHigherPerplexity) {
  Case c;
  c.add("pro", 1.6, 1.5, 0.9, -0.1);
  const Proof proof = c.judge();
  EXPECT_TRUE(proof.better);
  ASSERT_EQ(proof.rows.size(), 1u);
  EXPECT_TRUE(proof.rows[0].lower_perplexity);
  EXPECT_TRUE(proof.rows[0].as_many_needles);
  EXPECT_NEAR(proof.rows[0].difference[1].value, 100 * (std::exp(-0.1) - 1), 1e-9);
  EXPECT_NE(to_text(proof).find("tuned compared with"), std::string::npos);
}

TEST(Proof, OneLengthWithoutALeadLoses) {
  Case c;
  c.add("uni", 1.49, 1.5, 0.8, 0);
  c.add("yarn", 1.7, 1.7, 0.8, 0);
  const Proof proof = c.judge();
  EXPECT_FALSE(proof.better);
  EXPECT_EQ(proof.recommended, "uni");
  EXPECT_FALSE(proof.rows[0].against.empty());
  EXPECT_TRUE(proof.rows[1].against.empty());
}

TEST(Proof, LowerPerplexityWithFarFewerNeedlesDoesNotCount) {
  Case c;
  c.add("yarn", 1.4, 1.3, 0.3, 0.5);
  EXPECT_TRUE(c.judge().better);
}

TEST(Proof, LowerPerplexityWithAsManyNeedlesWins) {
  Case c;
  c.add("yarn", 1.4, 1.3, 0.78, 0.02);
  EXPECT_FALSE(c.judge().better);
  EXPECT_EQ(c.judge().recommended, "yarn");
}

TEST(Proof, WithoutNeedlesPerplexityAloneDecides) {
  Case c;
  c.add("yarn", 1.4, 1.3, 0.3, 0.5);
  c.needle = {};
  EXPECT_FALSE(c.judge().better);
}

TEST(Proof, UntouchedModelIsShownButIsNotARival) {
  Case c;
  c.add_losses("none", 1.2, 1.1);
  c.ppl.methods.back().untouched = true;
  const Proof proof = c.judge();
  EXPECT_TRUE(proof.better);
  EXPECT_EQ(proof.untouched.size(), 2u);
}

}  // namespace
}  // namespace mrrope::tune
