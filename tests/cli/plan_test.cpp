// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/temp_folder.h"
#include "support/text.h"

namespace mrrope {
namespace {

using test::read_file;
using test::TempFolder;
using test::write_file;

using nlohmann::json;

const std::string kLlama2 = " --rotary-dim 128 --rope-freq-base 10000 --train-ctx 4096 ";

CommandResult plan(const std::string& arguments) {
  return run_command("plan" + kLlama2 + arguments);
}

using test::contains;

// With several methods each gets the flags that it uses; auto those of what it stands for.
TEST(PlanCommand, AutoIgnoresFlagsOfOtherMethodsBesideThem) {
  const std::string common =
      "plan --rotary-dim 64 --rope-freq-base 10000 --train-ctx 32k --ctx 16k";
  const CommandResult both = run_command(common + " --methods auto,far:pi --near 128");
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_TRUE(contains(both.err, "auto is none")) << both.err;
  const CommandResult alone = run_command(common + " --method auto --near 128");
  EXPECT_EQ(alone.exit_code, 0) << alone.err;  // as far:pi, which has nothing to do there either
  EXPECT_TRUE(contains(alone.err, "auto is none")) << alone.err;
  EXPECT_TRUE(
      contains(run_command(common + " --method auto --low 5").err, "auto does not use low"));
}

TEST(PlanCommand, JsonHasTheKeysScriptsRelyOn) {
  const json j = json::parse(plan("--method pro --ctx 64k --json").out);
  EXPECT_EQ(j["geometry"]["rotary_dim"], 128);
  EXPECT_EQ(j["geometry"]["base"], 10000);
  EXPECT_EQ(j["geometry"]["train_length"], 4096);
  EXPECT_EQ(j["geometry"]["pairing"], "halves");
  EXPECT_EQ(j["method"], "pro");
  EXPECT_EQ(j["scale"], 16);
  EXPECT_TRUE(j["parameters"].is_object());
  EXPECT_EQ(j["boundaries"], json({{"low", 20}, {"high", 46}}));
  EXPECT_EQ(j["theta"].size(), 64u);
  EXPECT_EQ(j["factor"].size(), 64u);
  EXPECT_EQ(j["lambda"].size(), 63u);
  EXPECT_NEAR(j["attention_scale"].get<double>(), 1.27725887, 1e-8);
  EXPECT_EQ(j["factor"][63], 16);
}

TEST(PlanCommand, WritesAPlanFileThatReadsBack) {
  const TempFolder folder;
  const std::string file = folder.file("plan.json");
  ASSERT_EQ(plan("--method power --power 0.5 --attn-coef 0.07 --ctx 32k -o " + file).exit_code, 0);
  const CommandResult again = run_command("plan --plan " + file + " --json");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, read_file(file));
}

TEST(PlanCommand, WritesALadderFileThatReadsBack) {
  const TempFolder folder;
  const std::string file = folder.file("ladder.json");
  ASSERT_EQ(plan("--method elastic:pro --ctx 32k --headroom 1.25 -o " + file).exit_code, 0);
  const CommandResult again = run_command("plan --plan " + file + " --json");
  EXPECT_EQ(again.out, read_file(file)) << again.err;
  const json j = json::parse(again.out);
  EXPECT_EQ(j["method"], "elastic:pro");
  EXPECT_EQ(j["rungs"].front()["length"], 4096);
  EXPECT_EQ(j["rungs"].back()["length"], 32768);
  EXPECT_EQ(j["rungs"].back()["scale"], 10);
  EXPECT_TRUE(contains(run_command("plan --plan " + file).out, "13 rungs"));
}

TEST(PlanCommand, WritesALadderWithANearPartThatReadsBack) {
  const TempFolder folder;
  const std::string file = folder.file("far.json");
  ASSERT_EQ(plan("--method far:pi --ctx 32k --near 1k --near-step 512 --headroom 1.25 -o " + file)
                .exit_code,
            0);
  const CommandResult again = run_command("plan --plan " + file + " --json");
  EXPECT_EQ(again.out, read_file(file)) << again.err;
  const json j = json::parse(again.out);
  EXPECT_EQ(j["method"], "far:pi");
  EXPECT_EQ(j["near"]["length"], 1024);
  EXPECT_EQ(j["near"]["step"], 512);
  EXPECT_EQ(j["parameters"]["attn_coef"], 0);
  EXPECT_EQ(j["rungs"].front()["border"], 0);
  EXPECT_EQ(j["rungs"].back()["border"], 31744);
  // A key at 0 is seen at 31744 / 2048 of its distance from the border.
  EXPECT_EQ(j["rungs"].back()["scale"], 31744 / 2048.0);
  EXPECT_EQ(j["rungs"].back()["shift"], 31744 - 2048);
  const std::string table = run_command("plan --plan " + file).out;
  EXPECT_TRUE(contains(table, "the last 1024 to 1535 tokens are near")) << table;
  for (const auto& change :
       {json::parse(R"([{"op":"remove","path":"/near"}])"),
        json::parse(R"([{"op":"replace","path":"/near/step","value":1}])"),
        json::parse(R"([{"op":"replace","path":"/near/length","value":4000}])"),
        json::parse(R"([{"op":"replace","path":"/near/length","value":-5}])"),
        json::parse(R"([{"op":"replace","path":"/longest","value":1099511627776}])"),
        json::parse(R"([{"op":"replace","path":"/rungs/2/border","value":1}])"),
        json::parse(R"([{"op":"replace","path":"/rungs/2/shift","value":1}])"),
        json::parse(R"([{"op":"replace","path":"/method","value":"elastic:pi"}])"),
        json::parse(R"([{"op":"replace","path":"/method","value":"far:none"}])")}) {
    write_file(file, j.patch(change).dump());
    const CommandResult r = run_command("plan --plan " + file);
    EXPECT_EQ(r.exit_code, 4) << change << r.err;
  }
}

TEST(PlanCommand, RefusesAPlanFileWhoseNumbersWereEdited) {
  const TempFolder folder;
  const std::string file = folder.file("plan.json");
  ASSERT_EQ(plan("--method pro --ctx 32k -o " + file).exit_code, 0);
  const json original = json::parse(read_file(file));
  const auto refused = [&](auto change) {
    json j = original;
    change(j);
    write_file(file, j.dump());
    const CommandResult r = run_command("plan --plan " + file);
    EXPECT_EQ(r.exit_code, 4) << r.err << j.dump();
    return r.err;
  };
  EXPECT_TRUE(contains(refused([](json& j) { j["factor"][30] = 2; }), "factor 30 is 2"));
  EXPECT_TRUE(contains(refused([](json& j) { j["attention_scale"] = 1; }), "attention_scale is 1"));
  EXPECT_TRUE(contains(refused([](json& j) { j["factor"].erase(0); }), "63"));
  EXPECT_TRUE(contains(refused([](json& j) { j["scale"] = 0.5; }), "0.5"));
  EXPECT_TRUE(contains(refused([](json& j) { j["scale"] = "8"; }), "scale is \"8\""));
  EXPECT_TRUE(contains(refused([](json& j) { j["method"] = "magic"; }), "magic"));
  EXPECT_TRUE(contains(refused([](json& j) { j["parameters"]["colour"] = 1; }), "colour"));
  EXPECT_TRUE(contains(refused([](json& j) { j["geometry"].erase("base"); }), "base"));
  EXPECT_TRUE(contains(refused([](json& j) { j["geometry"]["rotary_dim"] = 1e18; }), "rotary_dim"));
  EXPECT_TRUE(contains(refused([](json& j) { j["geometry"]["pairing"] = "thirds"; }), "thirds"));
  refused([](json& j) { j = json::array(); });
  write_file(file, "{\"method\":");
  EXPECT_EQ(run_command("plan --plan " + file).exit_code, 4);
  EXPECT_EQ(run_command("plan --plan " + folder.file("absent.json")).exit_code, 1);
}

TEST(PlanCommand, RefusesALadderFileWhoseRungsWereEdited) {
  const TempFolder folder;
  const std::string file = folder.file("ladder.json");
  ASSERT_EQ(plan("--method elastic:uni --ctx 16k -o " + file).exit_code, 0);
  const json original = json::parse(read_file(file));
  for (const auto& change :
       {json::parse(R"([{"op":"remove","path":"/rungs/2"}])"),
        json::parse(R"([{"op":"replace","path":"/rungs/2/length","value":1}])"),
        json::parse(R"([{"op":"replace","path":"/rung_step","value":1}])"),
        json::parse(R"([{"op":"replace","path":"/headroom","value":0.9}])"),
        json::parse(R"([{"op":"remove","path":"/longest"}])")}) {
    write_file(file, original.patch(change).dump());
    EXPECT_EQ(run_command("plan --plan " + file).exit_code, 4) << change;
  }
}

TEST(PlanCommand, ReadsListsFromTheCommandLineAndFromFiles) {
  const TempFolder folder;
  json list = json::array();
  for (int i = 0; i < 64; ++i) list.push_back(1 + i / 16.0);
  write_file(folder.file("list.json"), list.dump());
  const CommandResult r =
      plan("--method longrope --scale 4 --json --factors @" + folder.file("list.json"));
  EXPECT_EQ(json::parse(r.out)["factor"], list) << r.err;
  const std::string four = "plan --rotary-dim 8 --rope-freq-base 10000 --train-ctx 4096 --json ";
  EXPECT_EQ(json::parse(run_command(four + "--method custom --factors 1,1.5,2,4").out)["factor"],
            json({1.0, 1.5, 2.0, 4.0}));
  EXPECT_EQ(json::parse(run_command(four + "--method custom --lambdas 1,2,2").out)["factor"],
            json({1.0, 1.0, 2.0, 4.0}));
  EXPECT_EQ(run_command(four + "--method custom --factors 1,x,2,4").exit_code, 2);
  EXPECT_EQ(run_command(four + "--method custom --factors 1,nan,2,4").exit_code, 2);
  EXPECT_EQ(run_command(four + "--method custom --factors 1,2").exit_code, 2);
  EXPECT_EQ(run_command(four + "--method custom --factors @/absent").exit_code, 1);
}

TEST(PlanCommand, LengthBelowTheWindowIsScaleOneWithANote) {
  const CommandResult r = plan("--method pro --ctx 1k --json");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_TRUE(contains(r.err, "inside the trained window")) << r.err;
  EXPECT_EQ(json::parse(r.out)["scale"], 1);
}

TEST(PlanCommand, CtxAndScaleTogetherAreRefused) {
  for (const char* method : {"pro", "elastic:pro", "custom --factors 1,2"}) {
    const CommandResult r = plan(std::string("--ctx 4k --scale 8 --method ") + method);
    EXPECT_EQ(r.exit_code, 2) << method;
    EXPECT_TRUE(contains(r.err, "ctx 4096 and scale 8 both set")) << r.err;
  }
  // These use both, or neither.
  EXPECT_EQ(plan("--ctx 16k --scale 2 --methods dynamic-ntk,none").exit_code, 0);
}

TEST(PlanCommand, ElasticMethodThatFollowsTheLengthKeepsItsFactor) {
  const json j = json::parse(plan("--ctx 16k --scale 2 --method elastic:dynamic-ntk --json").out);
  EXPECT_EQ(j["scale"], 2);
  EXPECT_DOUBLE_EQ(j["rungs"].back()["factor"].back().get<double>(), 2 * 4.0 - 1);
}

TEST(PlanCommand, UnwritableOutputIsNamed) {
  const CommandResult unwritable = plan("--method pro --scale 4 -o /proc/nowhere/plan.json");
  EXPECT_EQ(unwritable.exit_code, 1);
  EXPECT_TRUE(contains(unwritable.err, "/proc/nowhere/plan.json")) << unwritable.err;
}

TEST(PlanCommand, FlagsThatNothingUsesAreRefused) {
  const std::string model = MRROPE_TINY_MODEL;
  for (const char* flag :
       {"--power 2", "--near 100", "--near-step 100", "--rung-step 2", "--low 3"}) {
    const CommandResult r = run_command("plan " + model + " --methods pi,ntk --ctx 2k " + flag);
    EXPECT_EQ(r.exit_code, 2) << flag;
    EXPECT_TRUE(test::contains(r.err, "none of these methods uses")) << r.err;
  }
  // One of them does.
  EXPECT_EQ(run_command("plan " + model + " --methods yarn,power --ctx 2k --power 2").exit_code, 0);

  const test::TempFolder folder;
  const std::string plan = folder.file("p.json");
  ASSERT_EQ(run_command("plan " + model + " --method pro --ctx 2k -o " + plan).exit_code, 0);
  for (const char* flag :
       {"--power 2", "--near 100", "--headroom 2", "--scale 3", "--attn-coef 0"}) {
    const CommandResult r =
        run_command("generate " + model + " -p x -n 1 --plan " + plan + " " + flag);
    EXPECT_EQ(r.exit_code, 2) << flag;
    EXPECT_TRUE(test::contains(r.err, "does not change a plan file")) << r.err;
  }
}

TEST(PlanCommand, OutputsThatExcludeEachOther) {
  const TempFolder folder;
  const std::string model = MRROPE_TINY_MODEL;
  EXPECT_EQ(run_command("plan " + model + " --method pro --ctx 2k --csv -o " + folder.file("f.csv"))
                .exit_code,
            2);
  EXPECT_EQ(run_command("plan " + model + " --methods yarn,pro --ctx 2k --diff --json").exit_code,
            2);
  EXPECT_EQ(run_command("plan " + model + " --methods yarn,pro --ctx 2k --diff --csv").exit_code,
            2);
}

TEST(PlanCommand, FromTakesARampThatIsNotRounded) {
  const TempFolder folder;
  write_file(folder / "config.json",
             R"({"model_type": "gpt_oss", "hidden_size": 2880, "num_attention_heads": 64,
                 "num_key_value_heads": 8, "head_dim": 64, "num_hidden_layers": 2,
                 "max_position_embeddings": 131072, "rope_theta": 150000, "vocab_size": 1000,
                 "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"],
                 "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
                 "original_max_position_embeddings": 4096, "rope_type": "yarn",
                 "truncate": false}})");
  const std::string path = folder.file("config.json");
  const CommandResult r = run_command("plan --plan " + path + " --json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json own = json::parse(run_command("inspect " + path + " --json").out);
  const json factors = json::parse(r.out)["factor"];
  ASSERT_EQ(factors.size(), 32u);
  EXPECT_NEAR(factors[9].get<double>(), 1.1043, 1e-4) << own["geometry"];
  EXPECT_NEAR(factors[13].get<double>(), 2.0445, 1e-4);
}

// The window times the factor is half of what Llama 3.1 was trained for.
TEST(PlanCommand, FromTakesTheDeclaredLength) {
  const TempFolder folder;
  folder.write("llama/config.json",
               R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
                   "num_hidden_layers": 2, "max_position_embeddings": 131072,
                   "rope_theta": 500000.0, "vocab_size": 64, "rope_scaling": {"factor": 8.0,
                   "high_freq_factor": 4.0, "low_freq_factor": 1.0, "rope_type": "llama3",
                   "original_max_position_embeddings": 8192}})");
  const std::string model = folder.file("llama");
  const std::string plan = folder.file("plan.json");
  const CommandResult r = run_command("plan --plan " + model);
  EXPECT_TRUE(test::contains(r.out, "(131072 tokens)")) << r.out;
  ASSERT_EQ(run_command("plan --plan " + model + " -o " + plan).exit_code, 0);
  const CommandResult commands =
      run_command("export " + model + " --replace-scaling --to commands --plan " + plan);
  EXPECT_TRUE(test::contains(commands.out, "-c 131072")) << commands.out << commands.err;
  // A plan of another geometry has no commands.
  const CommandResult other = run_command("export " + model + " --to commands --plan " + plan);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(test::contains(other.err, "the plan was made for")) << other.err;
}

TEST(PlanCommand, WhatNothingReadsIsRefused) {
  const TempFolder folder;
  const std::string plan = folder.file("plan.json");
  const std::string other = "--rotary-dim 128 --rope-freq-base 1e4 --train-ctx 2k ";
  ASSERT_EQ(run_command("plan " + other + "--method pro --scale 2 -o " + plan).exit_code, 0);
  for (const std::string& line :
       {"plan --plan " + plan + " --ctx 8k", "plan --plan " + plan + " --scale 8",
        std::string("plan --plan x --scale 3"), std::string("plan --plan x --beta-fast 3"),
        "plan " MRROPE_TINY_MODEL " --plan " + plan}) {
    const CommandResult r = run_command(line);
    EXPECT_EQ(r.exit_code, 2) << line;
    EXPECT_TRUE(test::contains(r.err, "its own numbers") || test::contains(r.err, "was made for"))
        << r.err;
  }
  // The remedy works when it is typed.
  const CommandResult none = run_command("plan --plan " MRROPE_TINY_MODEL);
  EXPECT_TRUE(test::contains(none.err, "mrrope plan " MRROPE_TINY_MODEL " --method pro --ctx 128k"))
      << none.err;
}

TEST(PlanCommand, FromTakesATemperatureOfOne) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "qwen");
  write_file(folder / "qwen" / "config.json",
             R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 896,
                 "num_attention_heads": 14, "num_key_value_heads": 2, "num_hidden_layers": 2,
                 "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 32768,
                 "rope_theta": 1000000.0, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                 "attention_factor": 1.0, "original_max_position_embeddings": 32768}})");
  const CommandResult r = run_command("plan --plan " + folder.file("qwen"));
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(test::contains(r.out, "attention scale 1.0000")) << r.out;
}

}  // namespace
}  // namespace mrrope
