// SPDX-License-Identifier: Apache-2.0
// mrrope theory and mrrope report as typed.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/temp_folder.h"

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

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TheoryCommand, Bound) {
  const json j = json_of("theory bound llama2 --methods none,pro --scale 16 --reach 16k");
  EXPECT_EQ(j["plans"][0]["first_negative"], 1707);
  EXPECT_EQ(j["plans"][1]["first_negative"], 14239);
  EXPECT_GT(j["plans"][1]["least_scale"].get<double>(), 16);
  EXPECT_GT(j["least_base"].get<double>(), 10000);
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
  EXPECT_GE(j["claims"].size(), 25u);
  EXPECT_TRUE(j["paper"].contains("tables"));
  const CommandResult text = run_command("theory claims");
  EXPECT_TRUE(contains(text.out, "yarn-regressive: does not hold"));
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
           {"theory claims --results nosuch", 1, "nosuch"},
           {"theory claims --svg x.svg", 2, "chart"},
           {"report nosuch", 1, "nosuch"},
           {"report", 2, "folders"}}) {
    const CommandResult r = run_command(arguments);
    EXPECT_EQ(r.exit_code, code) << arguments << ": " << r.err;
    EXPECT_TRUE(contains(r.err, word)) << arguments << ": " << r.err;
  }
}

}  // namespace
}  // namespace mrrope
