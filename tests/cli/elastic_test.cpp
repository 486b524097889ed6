// SPDX-License-Identifier: Apache-2.0
// A context that grows, as users see it: the real command on the tiny model.
#include <gtest/gtest.h>

#include <map>

#include "support/command.h"

namespace mrrope {
namespace {

class ElasticCommand : public testing::Test {
 protected:
  ElasticCommand() { write_file(folder_.file("a.txt"), lemmas(0, 32)); }
  TempFolder folder_;
};

TEST_F(ElasticCommand, MatchesTheUntouchedModelInsideTheWindowAndIsBetterBeyond) {
  const std::string out = folder_.file("run");
  expect_run("eval ppl " + kModel + " --text " + folder_.file("a.txt") +
             " --methods none,pro,elastic:pro,far:pi,far:pro --lengths 1k,1200 -o " + out);
  std::map<std::pair<std::string, int>, double> perplexity;
  const json results = json::parse(read_file(out + "/results.json"));
  for (const json& row : results["results"]) {
    if (row["metric"] == "perplexity") {
      perplexity[{row["method"], row["length"]}] = row["value"];
    }
  }
  EXPECT_EQ((perplexity[{"elastic:pro", 1024}]), (perplexity[{"none", 1024}]));
  EXPECT_NE((perplexity[{"pro", 1024}]), (perplexity[{"none", 1024}]));
  EXPECT_LT((perplexity[{"elastic:pro", 1200}]), (perplexity[{"none", 1200}]));
  for (const char* far : {"far:pi", "far:pro"}) {
    EXPECT_EQ((perplexity[{far, 1024}]), (perplexity[{"none", 1024}])) << far;
    EXPECT_LT((perplexity[{far, 1200}]), (perplexity[{"none", 1200}])) << far;
  }
}

TEST_F(ElasticCommand, IsTheDefaultOfGenerate) {
  const std::string common = "generate " + kModel + " --ctx 1500 -f " + folder_.file("a.txt");
  const CommandResult said =
      expect_run(common + " -n 12 -v --json", 0, {"auto: far:pi, unchanged up to 1024", "rung "});
  const json answer = json::parse(said.out);
  EXPECT_GT(answer["rung"], 0);
  EXPECT_GT(answer["scale"], 1.1);
  const CommandResult fixed = expect_run(common + " -n 2 --method pro --json");
  EXPECT_EQ(json::parse(fixed.out)["rung"], 0);
  EXPECT_NEAR(json::parse(fixed.out)["scale"].get<double>(), 1500.0 / 1024, 1e-9);
}

// Keys of four bits round too much for a near part: they are turned once instead.
TEST_F(ElasticCommand, FallsBackWhereTheDefaultCannotRun) {
  const std::string common =
      "generate " + kModel + " --ctx 1500 -n 2 --json -ctk q4_0 -fa on -f " + folder_.file("a.txt");
  const CommandResult said = expect_run(common, 0,
                                        {"keys of type q4_0 would be turned up to",
                                         "auto: elastic:pro(rung_step=2), unchanged up to 1024"});
  EXPECT_EQ(json::parse(said.out)["rung"], 1);
  const CommandResult named = run_command(common + " --method far:pi");
  EXPECT_NE(named.exit_code, 0);
  EXPECT_TRUE(contains(named.err, "give -ctk f16")) << named.err;
}

TEST_F(ElasticCommand, ResumesASavedSession) {
  const std::string session = folder_.file("session");
  const std::string common = "generate " + kModel + " --ctx 1500 --json -n 4 -f " +
                             folder_.file("a.txt") + " --session " + session;
  const CommandResult first = expect_run(common);
  const CommandResult second = expect_run(common);
  EXPECT_EQ(json::parse(first.out)["text"], json::parse(second.out)["text"]);
  const int tokens = json::parse(first.out)["prompt_tokens"];
  EXPECT_GT(tokens, 1000);
  EXPECT_EQ(json::parse(first.out)["cached_tokens"], 0);
  EXPECT_EQ(json::parse(second.out)["prompt_tokens"], tokens);
  EXPECT_EQ(json::parse(second.out)["cached_tokens"], tokens - 1);  // the last one is read again
  EXPECT_FALSE(contains(second.err, "is another text than")) << second.err;
  expect_run("generate " + kModel + " --ctx 1500 -n 1 -p Hi --session " + session, 0,
             {"is another text than"});
  expect_run(common + " --method pro", 2, {"was saved with plan"});
}

// A session belongs to the digest of its ladder: what the note names is the same one.
TEST_F(ElasticCommand, TheMethodThatTheNoteNamesGivesTheSamePlan) {
  for (const char* ctx : {"1500", "4k", "5k"}) {
    const std::string common = std::string("generate ") + kModel + " --ctx " + ctx +
                               " -n 1 -p Let --session " + folder_.file(ctx);
    expect_run(common);
    expect_run(common + " --method far:pi");
    const std::string plan = std::string("plan ") + kModel + " --json --ctx " + ctx;
    EXPECT_EQ(run_command(plan + " --method auto").out, run_command(plan + " --method far:pi").out);
  }
}

// auto is measured by default, under the plan that generate and serve use.
TEST_F(ElasticCommand, IsMeasuredByDefault) {
  for (const char* ctx : {"1500", "5k"}) {
    const std::string out = folder_.file(std::string("usual") + ctx);
    const std::string common = "eval ppl " + kModel + " --text " + folder_.file("a.txt") +
                               " --kl-positions 0 --lengths 1100 --ctx " + ctx + " -o " + out;
    expect_run(common, 0, {"auto: far:pi, unchanged up to 1024 tokens"});
    expect_run(common + "-typed --method far:pi");
    std::vector<std::string> names;
    const json usual = json::parse(read_file(out + "/run.json"));
    for (const json& m : usual.at("methods")) names.push_back(m.at("method"));
    EXPECT_EQ(names, (std::vector<std::string>{"none", "yarn", "pro", "auto"}));
    const json typed = json::parse(read_file(out + "-typed/run.json"));
    EXPECT_EQ(usual["methods"].back().at("plan"), typed["methods"].back().at("plan")) << ctx;
  }
}

TEST_F(ElasticCommand, EveryAutoHasItsOwnLadder) {
  const std::string out = folder_.file("autos");
  expect_run("eval ppl " + kModel + " --methods 'auto,auto(headroom=2)' --text " +
             folder_.file("a.txt") + " --kl-positions 0 --lengths 1100 --ctx 1500 -o " + out);
  const json methods = json::parse(read_file(out + "/run.json"))["methods"];
  EXPECT_NE(methods[0]["plan"], methods[1]["plan"]);
}

TEST_F(ElasticCommand, ResumesASessionWithANearPart) {
  const std::string common = "generate " + kModel + " --ctx 1500 --json -n 4 -f " +
                             folder_.file("a.txt") + " --session " + folder_.file("session");
  const CommandResult first = expect_run(common + " --method far:pi");
  EXPECT_GT(json::parse(first.out)["rung"], 0);
  const CommandResult second = expect_run(common + " --method far:pi");
  EXPECT_EQ(json::parse(first.out)["text"], json::parse(second.out)["text"]);
  EXPECT_EQ(json::parse(second.out)["cached_tokens"],
            json::parse(second.out)["prompt_tokens"].get<int>() - 1);
  expect_run(common + " --method far:pi --near 300", 2, {"was saved with plan"});
}

}  // namespace
}  // namespace mrrope
