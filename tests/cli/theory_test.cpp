// SPDX-License-Identifier: Apache-2.0
// Attention of a real model; tests/transcripts/theory.txt has the rest.
#include <gtest/gtest.h>

#include "support/command.h"

namespace mrrope {
namespace {

json json_of(const std::string& arguments) { return expect_json(arguments + " --json"); }

// The pages that show a picture name its command below it.
TEST(TheoryCommand, DrawsThePicturesOfTheDocs) {
  const TempFolder temp;
  const std::string docs = std::string(MRROPE_GOLDEN_DIR) + "/../../docs";
  const std::pair<std::string, std::string> pictures[] = {
      {"design/growing-contexts.md",
       "theory distance --rotary-dim 128 --rope-freq-base 10000 --train-ctx 1024 --ctx 2000 "
       "--method none,pi,far:pi -o near-far.svg"},
      {"design/growing-contexts.md",
       "theory ladder llama2 --ctx 16k --method pro,elastic:pro,far:pi -o ladder.svg"},
      {"design/paper.md",
       "theory digits --rotary-dim 8 --rope-freq-base 10000 --train-ctx 4096 --method none,pi,pro "
       "--scale 4 --positions 1234,1235,4096,12340 -o radix.svg"}};
  for (const auto& [page, command] : pictures) {
    EXPECT_TRUE(contains(read_file(docs + "/" + page), "    mrrope " + command + "\n")) << command;
    expect_run(command, 0, {}, "cd " + temp.path().string() + ";");
    const std::string file = command.substr(command.rfind(' ') + 1);
    EXPECT_EQ(read_file(temp / file), read_file(docs + "/pictures/" + file)) << file;
  }
}

TEST(TheoryCommand, TheScaleAtEachLength) {
  const json j = json_of("theory ladder llama2 --ctx 16k --method pro,elastic:pro,far:pi");
  EXPECT_EQ(j["methods"][0]["steps"], json::parse(R"([{"up_to": 16384, "scale": 4.0}])"));
  const json& elastic = j["methods"][1]["steps"];
  EXPECT_EQ(elastic.size(), 9u);
  EXPECT_EQ(elastic[0], json::parse(R"({"up_to": 4096, "scale": 1.0})"));
  EXPECT_EQ(elastic.back(), json::parse(R"({"up_to": 16384, "scale": 4.0})"));
  const json& far = j["methods"][2]["steps"];
  ASSERT_EQ(far.size(), 5u) << "the borders of a rung have one scale";
  EXPECT_EQ(far[4]["up_to"], 16384);
  EXPECT_NEAR(far[4]["scale"].get<double>(), 1.25 * 15872 / (4096 - 1024), 2e-3);
}

// One chart where every pair sees the same, two where pairs differ.
TEST(TheoryCommand, ChartsOfDistance) {
  const TempFolder temp;
  const auto charts = [&](const std::string& methods) {
    expect_run("theory distance llama2 --ctx 8k --method " + methods + " -o " + temp.file("d.svg"));
    const std::string text = read_file(temp / "d.svg");
    return std::pair(contains(text, "How far away each token seems"),
                     contains(text, "in the slowest pair"));
  };
  EXPECT_EQ(charts("none,pi,far:pi"), std::pair(true, false));
  EXPECT_EQ(charts("none,pro"), std::pair(false, true));
}

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
