// SPDX-License-Identifier: Apache-2.0
// mrrope theory and mrrope report as typed.
#include <gtest/gtest.h>

#include <algorithm>

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

// As docs/reference/methods.md prints it.
TEST(TheoryCommand, RootsOverScales) {
  const json j = json_of("theory bound llama2 --methods yarn,pro --scales 2..64");
  ASSERT_EQ(j["scales"].size(), 63u);
  EXPECT_EQ(j["scales"].back(), 64);
  EXPECT_EQ(j["methods"][1]["method"], "pro");
  EXPECT_EQ(j["methods"][1]["first_negative"][14], 14239) << "scale 16, as theory bound has it";
  ASSERT_EQ(j["pairs"].size(), 1u);
  EXPECT_EQ(j["pairs"][0]["flips"].size(), 17u);
  EXPECT_EQ(j["pairs"][0]["flips"][0], json::parse("[2.0, 3.0]"));
  EXPECT_EQ(j["pairs"][0]["ahead"], 28);
  expect_run("theory bound llama2 --methods yarn,pro --scales 2..64", 0,
             {"2, 4, 10..11, 13..19, 27, 29, 31..41, 43..45, 49"});
}

// There and back through a file.
TEST(TheoryCommand, PositionFromItsDigits) {
  const TempFolder temp;
  const json there = json_of("theory digits llama2 --methods pro --scale 16 --positions 100k");
  write_file(temp / "digits.json", there["plans"][0]["positions"][0]["digits"].dump());
  const json back = json_of("theory digits llama2 --methods pro --scale 16 --digits @" +
                            temp.file("digits.json"));
  EXPECT_EQ(back["plans"][0]["positions"], json::parse("[[102400, 102400]]"));
}

TEST(TheoryCommand, ThePresetsCompareRegressiveUniformAndProgressive) {
  for (const char* preset : {"paper/theory-factors", "paper/theory-bound"}) {
    const json j = json_of(std::string("--preset ") + preset);
    std::vector<std::string> names;
    for (const json& plan : j["plans"]) names.push_back(plan["method"]);
    for (const char* method : {"yarn", "yarn-rotations", "regressive", "uni", "pro"}) {
      EXPECT_NE(std::find(names.begin(), names.end(), method), names.end())
          << preset << " " << method;
    }
  }
}

TEST(TheoryCommand, DistanceOfPlanFiles) {
  const TempFolder folder;
  const std::string plan = folder.file("plan.json");
  expect_run("plan " + kModel + " --method elastic:pro --ctx 4k -o " + plan);
  // As far as it reaches.
  expect_run("theory distance " + kModel + " --plan " + plan, 0, {"4095"});
  expect_run("theory distance --rotary-dim 64 --rope-freq-base 1e4 --train-ctx 1k --plan " + plan,
             2, {"was made for rotary_dim 128"});
}

// A file has its own geometry and its own reach.
TEST(TheoryCommand, FiguresOfPlanFilesAlone) {
  const TempFolder folder;
  const std::string plan = folder.file("plan.json");
  const std::string geometry = "--rotary-dim 64 --rope-freq-base 5e5 --train-ctx 8k ";
  expect_run("plan " + geometry + "--method pro --scale 4 -o " + plan);
  const CommandResult bound =
      expect_run("theory bound --plan " + plan, 0, {"base 5e+05, window 8192"});
  EXPECT_EQ(bound.err, "");
  expect_run("theory distance --plan " + plan, 0, {"32768 tokens"});
  const std::string text = expect_run("theory factors --json --plan " + plan).out;
  EXPECT_EQ(text.find("plan.json"), text.rfind("plan.json")) << text;
}

TEST(TheoryCommand, DynamicNtkReachesItsLength) {
  expect_run("theory bound llama2 --methods dynamic-ntk --ctx 16k", 0, {"16384"});
  expect_run("theory digits llama2 --positions 0,4096");
}

}  // namespace
}  // namespace mrrope
