// SPDX-License-Identifier: Apache-2.0
// Attention of a real model; tests/transcripts/theory.txt has the rest.
#include <gtest/gtest.h>

#include "support/command.h"

namespace mrrope {
namespace {

json json_of(const std::string& arguments) { return expect_json(arguments + " --json"); }

TEST(TheoryCommand, AttentionOfARealModel) {
  const json j = json_of("theory attention " + kModel +
                         " --methods none,yarn,pro --scale 4 --tokens 128 --layers 1 --pairs 20");
  ASSERT_EQ(j["plans"].size(), 3u);
  EXPECT_EQ(j["plans"][0]["mean"].size(), j["distances"].size());
  EXPECT_GT(j["plans"][0]["ks"].get<double>(), 0);
  EXPECT_LE(j["plans"][0]["ks"].get<double>(), 1);
  // The untouched model meets new angles past its window; PI-like pairs of pro do not.
  double none = 0;
  double pro = 0;
  for (const json& x : j["plans"][0]["new_angles"]) none += x.get<double>();
  for (const json& x : j["plans"][2]["new_angles"]) pro += x.get<double>();
  EXPECT_GT(none, 1);
  EXPECT_LT(pro, none);
  EXPECT_EQ(j, json_of("theory attention " + kModel +
                       " --methods none,yarn,pro --scale 4 --tokens 128 --layers 1 --pairs 20"));
}

TEST(TheoryCommand, AttentionOfAModelAsItRuns) {
  const std::string command =
      "theory attention " + kModel + " --tokens 1200 --methods none,pro --layers 0,1 --pairs 10";
  const json j = json_of(command);
  EXPECT_EQ(j["as_it_runs"], true);
  EXPECT_EQ(j["tokens"], 1200);
  EXPECT_EQ(j["layers"], "0, 1");
  ASSERT_EQ(j["plans"].size(), 2u);
  EXPECT_DOUBLE_EQ(j["plans"][1]["scale"].get<double>(), 1200.0 / 1024) << "as the text needs";
  EXPECT_EQ(j["distances"].back(), 1200 - 75);
  EXPECT_TRUE(j["plans"][1]["ks"].is_number());
  EXPECT_NE(j["plans"][0]["mean"], j["plans"][1]["mean"]);
  // Inside the window nothing has changed: read once and turned.
  EXPECT_FALSE(json_of("theory attention " + kModel + " --tokens 64 --layers 0 --method pro")
                   .contains("as_it_runs"));
}

}  // namespace
}  // namespace mrrope
