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
  const json j = json_of("theory bound llama2 --methods none,pro --scale 16 --reach 16k");
  EXPECT_EQ(j["plans"][0]["first_negative"], 1707);
  EXPECT_EQ(j["plans"][1]["first_negative"], 14239);
  EXPECT_GT(j["plans"][1]["least_scale"].get<double>(), 16);
  EXPECT_GT(j["least_base"].get<double>(), 10000);
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

TEST(TheoryCommand, DigitsAndEstimate) {
  const json digits = json_of("theory digits llama2 --methods pi,pro --scale 4 --positions 1k");
  EXPECT_GT(digits["plans"][0]["colliding_positions"], 0);
  EXPECT_EQ(digits["plans"][1]["colliding_positions"], 0);
  EXPECT_EQ(digits["plans"][1]["positions"][0]["digits"].size(), 64u);
  const json estimate = json_of("theory estimate llama2 --bases 1e3,1e6 --length 8k --bound 0.1");
  EXPECT_LT(estimate["bases"][0]["linear_length"], estimate["bases"][1]["linear_length"]);
}

TEST(TheoryCommand, WritesFiles) {
  const TempFolder temp;
  const CommandResult r =
      run_command("theory factors llama2 --scale 4 --svg " + temp.file("f.svg") + " --html " +
                  temp.file("f.html") + " --csv " + temp.file("f.csv"));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(read_file(temp / "f.svg"), "<svg xmlns"));
  EXPECT_TRUE(contains(read_file(temp / "f-2.svg"), "lambda"));
  EXPECT_TRUE(contains(read_file(temp / "f.html"), "Content-Security-Policy"));
  EXPECT_TRUE(contains(read_file(temp / "f.csv"), "pro,4,63,4,"));
}

TEST(TheoryCommand, RefusesALengthAndAScaleThatDisagree) {
  const CommandResult r = run_command("theory factors llama2 --methods pro --ctx 8k --scale 4");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "both set how far pro extends the model")) << r.err;
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

TEST(TheoryCommand, RefusesBadInput) {
  for (const auto& [arguments, code, word] : std::vector<std::tuple<std::string, int, std::string>>{
           {"theory", 2, "needs a verb: digits"},
           {"theory bound nosuch.gguf", 1, "nosuch.gguf"},
           {"theory bound llama2 --length 0", 2, "0"},
           {"theory bound llama2 --length 99999999m", 2, "99999999"},
           {"theory estimate llama2 --bound 2", 2, "2"},
           {"theory estimate llama2 --bases -1", 2, "base"},
           {"theory digits llama2 --positions x", 2, "x"},
           {"theory attention llama2", 2, "model"},
           {"theory bound llama2 --scales 0..64", 2, "a scale of 0 is below 1"},
           {"theory bound llama2 --scales 64..2", 2, "2 does not come after 64"},
           {"theory bound llama2 --scales 16", 2, "there is no .. in it"},
           {"theory bound llama2 --scales 2..x", 2, "'x' is not a whole number"},
           {"theory bound llama2 --scales 2..9000", 2, "8999 scales are more than 256"},
           {"theory bound llama2 --scales 2..4 --scale 3", 2, "--scale"},
           {"theory digits llama2 --methods pro --digits 1,2", 2, "2 digits given"},
           {"theory digits llama2 --methods pro --digits 1,x", 2, "'x' in --digits"},
           {"theory digits llama2 --positions 1 --digits 1", 2, "--positions"},
           {"theory digits llama2 --positions 9007199254740993", 2, "9007199254740993"},
           {"theory digits --rotary-dim 8 --rope-freq-base 10000 --train-ctx 4k --methods none "
            "--digits 4,3,2,11",
            2, "digit 3 is 11, but its radix is 10"},
           {"theory attention " MRROPE_TINY_MODEL " --method pro --ctx 2k --tokens 4k", 2,
            "--tokens 4k is more than the 2048 tokens"},
           {"theory attention " MRROPE_TINY_MODEL " --method elastic:pro --tokens 2k", 2,
            "elastic:pro changes its plan"},
           {"theory attention " MRROPE_TINY_MODEL " --method pro --tokens 1m", 2,
            "--tokens asks for 1048576"},
           {"theory attention " MRROPE_TINY_MODEL " --method pro --tokens 0", 2, "0"},
           {"theory claims --svg x.svg", 2, "chart"},
           {"report nosuch", 1, "nosuch"},
           {"report", 2, "folders"}}) {
    const CommandResult r = run_command(arguments);
    EXPECT_EQ(r.exit_code, code) << arguments << ": " << r.err;
    EXPECT_TRUE(contains(r.err, word)) << arguments << ": " << r.err;
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

TEST(TheoryCommand, PartsOfAGeometryAreNotIgnored) {
  EXPECT_EQ(run_command("theory factors --rope-freq-base 5e5 --method pro").exit_code, 2);
  const CommandResult example = run_command("theory factors llama2 --train-ctx 8k --method pro");
  EXPECT_EQ(example.exit_code, 2);
  EXPECT_TRUE(contains(example.err, "llama2 is an example")) << example.err;
}

TEST(TheoryCommand, DigitsOfAHugeBaseEnd) {
  const CommandResult r = run_command(
      "theory digits --rotary-dim 8 --rope-freq-base 1e38 --train-ctx 4k --methods none");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "too many positions")) << r.err;
}

}  // namespace
}  // namespace mrrope
