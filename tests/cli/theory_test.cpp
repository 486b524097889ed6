// SPDX-License-Identifier: Apache-2.0
// mrrope theory and mrrope report as typed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/temp_folder.h"
#include "support/text.h"

namespace mrrope {
namespace {

using nlohmann::json;
using test::read_file;
using test::TempFolder;

json json_of(const std::string& arguments) {
  const CommandResult r = run_command(arguments + " --json");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return json::parse(r.out, nullptr, false);
}

using test::contains;

TEST(TheoryCommand, Bound) {
  const json j = json_of("theory bound llama2 --methods none,pro --scale 16");
  EXPECT_EQ(j["plans"][0]["first_negative"], 1707);
  EXPECT_EQ(j["plans"][1]["first_negative"], 14239);
}

// docs/near-far.md shows the second picture of this command.
TEST(TheoryCommand, DrawsThePictureOfNearAndFar) {
  const TempFolder temp;
  const CommandResult r =
      run_command("theory distance llama2 --ctx 20k --methods pro,elastic:pro,far:pi --svg " +
                  temp.file("distance.svg"));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(read_file(temp / "distance-2.svg"),
            read_file(std::string(MRROPE_GOLDEN_DIR) + "/../../docs/pictures/near-far.svg"));
}

TEST(TheoryCommand, FactorsOfThePapersFigure) {
  const json j = json_of("theory factors llama2 --methods yarn,yarn-rotations,uni,pro");
  ASSERT_EQ(j["plans"].size(), 8u);  // scales 16 and 4
  EXPECT_EQ(j["plans"][0]["shape"], "progressive");
  EXPECT_EQ(j["plans"][1]["shape"], "regressive");
  EXPECT_EQ(j["plans"][2]["shape"], "uniform");
  EXPECT_EQ(j["plans"][3]["shape"], "progressive");
  EXPECT_DOUBLE_EQ(j["plans"][7]["factor"].back().get<double>(), 4);
}

TEST(TheoryCommand, Claims) {
  const json j = json_of("theory claims");
  EXPECT_GE(j["claims"].size(), 50u);
  const CommandResult text = run_command("theory claims");
  EXPECT_TRUE(contains(text.out, "yarn-regressive: holds in part"));
  EXPECT_TRUE(contains(text.out, "yarn-regressive-index: does not hold"));
  EXPECT_TRUE(contains(text.out, "qwen-32k: misprint"));
  EXPECT_TRUE(contains(text.out, "recall-85: open"));
  EXPECT_TRUE(contains(text.out, "  command: mrrope --preset paper/ppl-qwen ")) << text.out;
  // Runs are not judged.
  EXPECT_EQ(run_command("theory claims --results run1").exit_code, 2);
}

TEST(TheoryCommand, AttentionOfARealModel) {
  const std::string model = MRROPE_TINY_MODEL;
  const json j = json_of("theory attention " + model +
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
  EXPECT_EQ(j, json_of("theory attention " + model +
                       " --methods none,yarn,pro --scale 4 --tokens 128 --layers 1 --pairs 20"));
}

// As docs/report.md prints it.
TEST(TheoryCommand, AttentionAsTheDocsHaveIt) {
  const std::string model = MRROPE_TINY_MODEL;
  const json j = json_of("theory attention " + model + " --tokens 2k --method pro");
  EXPECT_EQ(j["as_it_runs"], true);
  EXPECT_EQ(j["tokens"], 2048);
  EXPECT_EQ(j["plans"][0]["scale"], 2);
}

TEST(TheoryCommand, AttentionOfAModelAsItRuns) {
  const std::string model = MRROPE_TINY_MODEL;
  const std::string command =
      "theory attention " + model + " --tokens 1200 --methods none,pro --layers 0,1 --pairs 10";
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
  EXPECT_FALSE(json_of("theory attention " + model + " --tokens 64 --layers 0 --method pro")
                   .contains("as_it_runs"));
}

// As docs/methods.md prints it.
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
  const CommandResult text = run_command("theory bound llama2 --methods yarn,pro --scales 2..64");
  EXPECT_TRUE(contains(text.out, "2, 4, 10..11, 13..19, 27, 29, 31..41, 43..45, 49")) << text.out;
}

// As the help of theory digits prints it.
TEST(TheoryCommand, PositionFromItsDigits) {
  const json decimal = json_of(
      "theory digits --rotary-dim 8 --rope-freq-base 10000 --train-ctx 4k --methods none --digits "
      "4,3,2,1");
  EXPECT_EQ(decimal["plans"][0]["positions"], json::parse("[[1234, 1234]]"));
  // There and back through a file.
  const TempFolder temp;
  const json there = json_of("theory digits llama2 --methods pro --scale 16 --positions 100k");
  test::write_file(temp / "digits.json", there["plans"][0]["positions"][0]["digits"].dump());
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
  const test::TempFolder folder;
  const std::string plan = folder.file("plan.json");
  const std::string model = MRROPE_TINY_MODEL;
  ASSERT_EQ(run_command("plan " + model + " --method elastic:pro --ctx 4k -o " + plan).exit_code,
            0);
  const CommandResult own = run_command("theory distance " + model + " --plan " + plan);
  EXPECT_EQ(own.exit_code, 0) << own.err;  // as far as it reaches
  EXPECT_TRUE(contains(own.out, "4095")) << own.out;
  const CommandResult other = run_command(
      "theory distance --rotary-dim 64 --rope-freq-base 1e4 --train-ctx 1k --plan " + plan);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err, "was made for rotary_dim 128")) << other.err;
}

// A file has its own geometry and its own reach.
TEST(TheoryCommand, FiguresOfPlanFilesAlone) {
  const test::TempFolder folder;
  const std::string plan = folder.file("plan.json");
  const std::string geometry = "--rotary-dim 64 --rope-freq-base 5e5 --train-ctx 8k ";
  ASSERT_EQ(run_command("plan " + geometry + "--method pro --scale 4 -o " + plan).exit_code, 0);
  const CommandResult bound = run_command("theory bound --plan " + plan);
  EXPECT_TRUE(contains(bound.out, "base 5e+05, window 8192")) << bound.out;
  EXPECT_EQ(bound.err, "");
  const CommandResult distance = run_command("theory distance --plan " + plan);
  EXPECT_TRUE(contains(distance.out, "32768 tokens")) << distance.out;
  const CommandResult factors = run_command("theory factors --json --plan " + plan);
  const std::string text = factors.out;
  ASSERT_EQ(factors.exit_code, 0) << factors.err;
  EXPECT_EQ(text.find("plan.json"), text.rfind("plan.json")) << text;
  const CommandResult other = run_command("theory bound llama3 --plan " + plan);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err, "was made for")) << other.err;
}

TEST(TheoryCommand, DynamicNtkReachesItsLength) {
  const CommandResult r = run_command("theory bound llama2 --methods dynamic-ntk --ctx 16k");
  EXPECT_TRUE(contains(r.out, "16384")) << r.out;
  EXPECT_EQ(run_command("theory digits llama2 --positions 0,4096").exit_code, 0);
}

}  // namespace
}  // namespace mrrope
