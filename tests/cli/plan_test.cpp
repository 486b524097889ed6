// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/command.h"

namespace mrrope {
namespace {

const std::string kLlama2 = " --rotary-dim 128 --rope-freq-base 10000 --train-ctx 4096 ";

CommandResult plan(const std::string& arguments, int exit_code = 0,
                   std::initializer_list<std::string> words = {}) {
  return expect_run("plan" + kLlama2 + arguments, exit_code, words);
}

// With several methods each gets the flags that it uses; auto those of what it stands for.
TEST(PlanCommand, AutoIgnoresFlagsOfOtherMethodsBesideThem) {
  const std::string common =
      "plan --rotary-dim 64 --rope-freq-base 10000 --train-ctx 32k --ctx 16k";
  expect_run(common + " --methods auto,far:pi --near 128", 0, {"auto is none"});
  // As far:pi, which has nothing to do there either.
  expect_run(common + " --method auto --near 128", 0, {"auto is none"});
  expect_run(common + " --method auto --low 5", 2, {"auto does not use low"});
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
  plan("--method power --power 0.5 --attn-coef 0.07 --ctx 32k -o " + file);
  const CommandResult again = expect_run("plan --plan " + file + " --json");
  EXPECT_EQ(again.out, read_file(file));
}

TEST(PlanCommand, WritesALadderFileThatReadsBack) {
  const TempFolder folder;
  const std::string file = folder.file("ladder.json");
  plan("--method elastic:pro --ctx 32k --headroom 1.25 -o " + file);
  const CommandResult again = run_command("plan --plan " + file + " --json");
  EXPECT_EQ(again.out, read_file(file)) << again.err;
  const json j = json::parse(again.out);
  EXPECT_EQ(j["method"], "elastic:pro");
  EXPECT_EQ(j["rungs"].front()["length"], 4096);
  EXPECT_EQ(j["rungs"].back()["length"], 32768);
  EXPECT_EQ(j["rungs"].back()["scale"], 10);
  expect_run("plan --plan " + file, 0, {"13 rungs"});
}

TEST(PlanCommand, WritesALadderWithANearPartThatReadsBack) {
  const TempFolder folder;
  const std::string file = folder.file("far.json");
  plan("--method far:pi --ctx 32k --near 1k --near-step 512 --headroom 1.25 -o " + file);
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
  expect_run("plan --plan " + file, 0, {"the last 1024 to 1535 tokens are near"});
  for (const char* change : {R"([{"op":"remove","path":"/near"}])",
                             R"([{"op":"replace","path":"/near/step","value":1}])",
                             R"([{"op":"replace","path":"/near/length","value":4000}])",
                             R"([{"op":"replace","path":"/near/length","value":-5}])",
                             R"([{"op":"replace","path":"/longest","value":1099511627776}])",
                             R"([{"op":"replace","path":"/rungs/2/border","value":1}])",
                             R"([{"op":"replace","path":"/rungs/2/shift","value":1}])",
                             R"([{"op":"replace","path":"/method","value":"elastic:pi"}])",
                             R"([{"op":"replace","path":"/method","value":"far:none"}])"}) {
    write_file(file, j.patch(json::parse(change)).dump());
    expect_run("plan --plan " + file, 4);
  }
}

TEST(PlanCommand, RefusesAPlanFileWhoseNumbersWereEdited) {
  const TempFolder folder;
  const std::string file = folder.file("plan.json");
  plan("--method pro --ctx 32k -o " + file);
  const json original = json::parse(read_file(file));
  const auto refused = [&](const char* change, const std::string& words) {
    write_file(file, original.patch(json::parse(std::string("[{") + change + "}]")).dump());
    expect_run("plan --plan " + file, 4, {words});
  };
  refused(R"("op":"replace","path":"/factor/30","value":2)", "factor 30 is 2");
  refused(R"("op":"replace","path":"/attention_scale","value":1)", "attention_scale is 1");
  refused(R"("op":"remove","path":"/factor/0")", "63");
  refused(R"("op":"replace","path":"/scale","value":0.5)", "0.5");
  refused(R"("op":"replace","path":"/scale","value":"8")", "scale is \"8\"");
  refused(R"("op":"replace","path":"/method","value":"magic")", "magic");
  refused(R"("op":"add","path":"/parameters/colour","value":1)", "colour");
  refused(R"("op":"remove","path":"/geometry/base")", "base");
  refused(R"("op":"replace","path":"/geometry/rotary_dim","value":1e18)", "rotary_dim");
  refused(R"("op":"replace","path":"/geometry/pairing","value":"thirds")", "thirds");
  for (const char* content : {"[]", "{\"method\":"}) {
    write_file(file, content);
    expect_run("plan --plan " + file, 4);
  }
}

TEST(PlanCommand, RefusesALadderFileWhoseRungsWereEdited) {
  const TempFolder folder;
  const std::string file = folder.file("ladder.json");
  plan("--method elastic:uni --ctx 16k -o " + file);
  const json original = json::parse(read_file(file));
  for (const char* change : {R"([{"op":"remove","path":"/rungs/2"}])",
                             R"([{"op":"replace","path":"/rungs/2/length","value":1}])",
                             R"([{"op":"replace","path":"/rung_step","value":1}])",
                             R"([{"op":"replace","path":"/headroom","value":0.9}])",
                             R"([{"op":"remove","path":"/longest"}])"}) {
    write_file(file, original.patch(json::parse(change)).dump());
    expect_run("plan --plan " + file, 4);
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
  expect_run(four + "--method custom --factors 1,x,2,4", 2);
  expect_run(four + "--method custom --factors 1,nan,2,4", 2);
  expect_run(four + "--method custom --factors 1,2", 2);
  expect_run(four + "--method custom --factors @/absent", 1);
}

TEST(PlanCommand, CtxAndScaleTogetherAreRefused) {
  for (const char* method : {"pro", "elastic:pro", "custom --factors 1,2"}) {
    plan(std::string("--ctx 4k --scale 8 --method ") + method, 2,
         {"ctx 4096 and scale 8 both set"});
  }
  // These use both, or neither.
  plan("--ctx 16k --scale 2 --methods dynamic-ntk,none");
}

TEST(PlanCommand, ElasticMethodThatFollowsTheLengthKeepsItsFactor) {
  const json j = json::parse(plan("--ctx 16k --scale 2 --method elastic:dynamic-ntk --json").out);
  EXPECT_EQ(j["scale"], 2);
  EXPECT_DOUBLE_EQ(j["rungs"].back()["factor"].back().get<double>(), 2 * 4.0 - 1);
}

TEST(PlanCommand, UnwritableOutputIsNamed) {
  plan("--method pro --scale 4 -o /proc/nowhere/plan.json", 1, {"/proc/nowhere/plan.json"});
}

TEST(PlanCommand, FlagsThatNothingUsesAreRefused) {
  for (const char* flag :
       {"--power 2", "--near 100", "--near-step 100", "--rung-step 2", "--low 3"}) {
    expect_run("plan " + kModel + " --methods pi,ntk --ctx 2k " + flag, 2,
               {"none of these methods uses"});
  }
  // One of them does.
  expect_run("plan " + kModel + " --methods yarn,power --ctx 2k --power 2");

  const TempFolder folder;
  const std::string plan = folder.file("p.json");
  expect_run("plan " + kModel + " --method pro --ctx 2k -o " + plan);
  for (const char* flag :
       {"--power 2", "--near 100", "--headroom 2", "--scale 3", "--attn-coef 0"}) {
    expect_run("generate " + kModel + " -p x -n 1 --plan " + plan + " " + flag, 2,
               {"does not change a plan file"});
  }
}

TEST(PlanCommand, OutputsThatExcludeEachOther) {
  const TempFolder folder;
  expect_run("plan " + kModel + " --method pro --ctx 2k --csv -o " + folder.file("f.csv"), 2);
  expect_run("plan " + kModel + " --methods yarn,pro --ctx 2k --diff --json", 2);
  expect_run("plan " + kModel + " --methods yarn,pro --ctx 2k --diff --csv", 2);
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
  const json factors = expect_json("plan --plan " + path + " --json")["factor"];
  ASSERT_EQ(factors.size(), 32u);
  EXPECT_NEAR(factors[9].get<double>(), 1.1043, 1e-4);
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
  expect_run("plan --plan " + model, 0, {"(131072 tokens)"});
  expect_run("plan --plan " + model + " -o " + plan);
  expect_run("export " + model + " --replace-scaling --to commands --plan " + plan, 0,
             {"-c 131072"});
  // A plan of another geometry has no commands.
  expect_run("export " + model + " --to commands --plan " + plan, 2, {"the plan was made for"});
}

TEST(PlanCommand, WhatNothingReadsIsRefused) {
  const TempFolder folder;
  const std::string plan = folder.file("plan.json");
  const std::string other = "--rotary-dim 128 --rope-freq-base 1e4 --train-ctx 2k ";
  expect_run("plan " + other + "--method pro --scale 2 -o " + plan);
  for (const std::string& line :
       {"plan --plan " + plan + " --ctx 8k", "plan --plan " + plan + " --scale 8",
        std::string("plan --plan x --scale 3"), std::string("plan --plan x --beta-fast 3"),
        "plan " MRROPE_TINY_MODEL " --plan " + plan}) {
    const CommandResult r = expect_run(line, 2);
    EXPECT_TRUE(contains(r.err, "its own numbers") || contains(r.err, "was made for")) << r.err;
  }
}

TEST(PlanCommand, FromTakesATemperatureOfOne) {
  const TempFolder folder;
  write_file(folder / "qwen" / "config.json",
             R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 896,
                 "num_attention_heads": 14, "num_key_value_heads": 2, "num_hidden_layers": 2,
                 "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 32768,
                 "rope_theta": 1000000.0, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                 "attention_factor": 1.0, "original_max_position_embeddings": 32768}})");
  expect_run("plan --plan " + folder.file("qwen"), 0, {"attention scale 1.0000"});
}

}  // namespace
}  // namespace mrrope
