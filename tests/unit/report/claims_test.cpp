// SPDX-License-Identifier: Apache-2.0
#include "report/paper/claims.h"

#include <gtest/gtest.h>

#include <map>

namespace mrrope::report {
namespace {

TEST(Claims, SomeHoldAndSomeDoNot) {
  std::map<std::string, ClaimState> state;
  for (const Claim& c : claims_of({})) {
    EXPECT_TRUE(state.emplace(c.id, c.state).second) << c.id;
    EXPECT_FALSE(c.says.empty() || c.found.empty() || c.place.empty()) << c.id;
    EXPECT_TRUE(c.measured.empty());
  }
  for (const char* id :
       {"boundaries", "ntk-equation", "uni-pro-equations", "yarn-equation", "pi-no-radix", "range",
        "temperature", "estimate-linear", "yarn-uni-last", "infinitebench-average"}) {
    EXPECT_EQ(state.at(id), ClaimState::holds) << id;
  }
  for (const char* id :
       {"yarn-linear", "yarn-regressive", "incomplete-pairs", "letters", "one-to-one",
        "estimate-sign", "bound", "bound-ratio", "pro-below-yarn", "misprint", "ruler-stable",
        "more-than-double", "recall-85", "longbench-model"}) {
    EXPECT_EQ(state.at(id), ClaimState::fails) << id;
  }
  for (const char* id : {"sensitivity", "attention", "needle-96k"}) {
    EXPECT_EQ(state.at(id), ClaimState::needs_model) << id;
  }
  EXPECT_EQ(table_of(claims_of({})).rows.size(), state.size());
}

// Roots of B(m) found before this project had a line of code.
TEST(Claims, BoundMatchesTheOneFoundByHand) {
  for (const Claim& c : claims_of({})) {
    if (c.id != "bound") continue;
    for (const char* part : {"untouched 1707", "PI 27297", "NTK 7920", "YaRN 11671",
                             "rotations 15037", "Uni 10263", "Pro 14239", "27436 at S = 32"}) {
      EXPECT_NE(c.found.find(part), std::string::npos) << part << " in " << c.found;
    }
  }
}

TEST(Claims, AreCheckedAgainstRuns) {
  RunRecord run;
  run.name = "run1";
  run.model = "Some Model";
  for (const auto& [method, value] :
       std::map<std::string, double>{{"yarn", 5.0}, {"pro", 4.0}, {"uni", 6.0}}) {
    run.rows.push_back({"ppl", method, "", "perplexity", 4, 4096, std::nullopt, {value, 0.1, 3}});
  }
  for (const Claim& c : claims_of({run})) {
    if (c.id == "pro-below-yarn") {
      EXPECT_EQ(c.measured, "run1 (Some Model): pro below yarn at 1 of 1 lengths (4k)");
    }
    if (c.id == "yarn-uni-last") {
      EXPECT_NE(c.measured.find("1 of 1"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace mrrope::report
