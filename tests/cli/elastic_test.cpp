// SPDX-License-Identifier: Apache-2.0
// A context that grows, as users see it: the real command on the tiny model.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/temp_folder.h"
#include "support/text.h"

namespace mrrope {
namespace {

using nlohmann::json;
using test::read_file;
using test::TempFolder;
using test::write_file;

using test::contains;
using test::lemmas;

class ElasticCommand : public testing::Test {
 protected:
  ElasticCommand() { write_file(folder_.file("a.txt"), lemmas(0, 32)); }
  TempFolder folder_;
};

TEST_F(ElasticCommand, MatchesTheUntouchedModelInsideTheWindowAndIsBetterBeyond) {
  const std::string out = folder_.file("run");
  const CommandResult r =
      run_command("eval ppl " + kModel + " --text " + folder_.file("a.txt") +
                  " --methods none,pro,elastic:pro,far:pi,far:pro --lengths 1k,1200 -o " + out);
  ASSERT_EQ(r.exit_code, 0) << r.err;
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
  const CommandResult said = run_command(common + " -n 12 -v --json");
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(contains(said.err, "auto: far:pi, unchanged up to 1024")) << said.err;
  EXPECT_TRUE(contains(said.err, "rung ")) << said.err;
  const json answer = json::parse(said.out);
  EXPECT_GT(answer["rung"], 0);
  EXPECT_GT(answer["scale"], 1.1);
  const CommandResult fixed = run_command(common + " -n 2 --method pro --json");
  ASSERT_EQ(fixed.exit_code, 0) << fixed.err;
  EXPECT_EQ(json::parse(fixed.out)["rung"], 0);
  EXPECT_NEAR(json::parse(fixed.out)["scale"].get<double>(), 1500.0 / 1024, 1e-9);
}

// Keys of four bits round too much for a near part: they are turned once instead.
TEST_F(ElasticCommand, FallsBackWhereTheDefaultCannotRun) {
  const std::string common =
      "generate " + kModel + " --ctx 1500 -n 2 --json -ctk q4_0 -fa on -f " + folder_.file("a.txt");
  const CommandResult said = run_command(common);
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_TRUE(contains(said.err, "keys of type q4_0 would be turned up to")) << said.err;
  EXPECT_TRUE(contains(said.err, "auto: elastic:pro(rung_step=2), unchanged up to 1024"))
      << said.err;
  EXPECT_EQ(json::parse(said.out)["rung"], 1);
  const CommandResult named = run_command(common + " --method far:pi");
  EXPECT_NE(named.exit_code, 0);
  EXPECT_TRUE(contains(named.err, "give -ctk f16")) << named.err;
}

TEST_F(ElasticCommand, ResumesASavedSession) {
  const std::string session = folder_.file("session");
  const std::string common = "generate " + kModel + " --ctx 1500 --json -n 4 -f " +
                             folder_.file("a.txt") + " --session " + session;
  const CommandResult first = run_command(common);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const CommandResult second = run_command(common);
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(json::parse(first.out)["text"], json::parse(second.out)["text"]);
  const int tokens = json::parse(first.out)["prompt_tokens"];
  EXPECT_GT(tokens, 1000);
  EXPECT_EQ(json::parse(first.out)["cached_tokens"], 0);
  EXPECT_EQ(json::parse(second.out)["prompt_tokens"], tokens);
  EXPECT_EQ(json::parse(second.out)["cached_tokens"], tokens - 1);  // the last one is read again
  EXPECT_FALSE(contains(second.err, "is another text than")) << second.err;
  const CommandResult text =
      run_command("generate " + kModel + " --ctx 1500 -n 1 -p Hi --session " + session);
  EXPECT_TRUE(contains(text.err, "is another text than")) << text.err;
  const CommandResult other = run_command(common + " --method pro");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err, "was saved with plan")) << other.err;
}

// A session belongs to the digest of its ladder: what the note names is the same one.
TEST_F(ElasticCommand, TheMethodThatTheNoteNamesGivesTheSamePlan) {
  for (const char* ctx : {"1500", "4k", "5k"}) {
    const std::string common = std::string("generate ") + kModel + " --ctx " + ctx +
                               " -n 1 -p Let --session " + folder_.file(ctx);
    ASSERT_EQ(run_command(common).exit_code, 0) << ctx;
    const CommandResult typed = run_command(common + " --method far:pi");
    EXPECT_EQ(typed.exit_code, 0) << ctx << typed.err;
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
    const CommandResult r = run_command(common);
    ASSERT_EQ(r.exit_code, 0) << r.err;
    EXPECT_TRUE(contains(r.err, "auto: far:pi, unchanged up to 1024 tokens")) << r.err;
    ASSERT_EQ(run_command(common + "-typed --method far:pi").exit_code, 0);
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
  const CommandResult r =
      run_command("eval ppl " + kModel + " --methods 'auto,auto(headroom=2)' --text " +
                  folder_.file("a.txt") + " --kl-positions 0 --lengths 1100 --ctx 1500 -o " + out);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json methods = json::parse(read_file(out + "/run.json"))["methods"];
  EXPECT_NE(methods[0]["plan"], methods[1]["plan"]);
}

TEST_F(ElasticCommand, ResumesASessionWithANearPart) {
  const std::string common = "generate " + kModel + " --ctx 1500 --json -n 4 -f " +
                             folder_.file("a.txt") + " --session " + folder_.file("session");
  const CommandResult first = run_command(common + " --method far:pi");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_GT(json::parse(first.out)["rung"], 0);
  const CommandResult second = run_command(common + " --method far:pi");
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(json::parse(first.out)["text"], json::parse(second.out)["text"]);
  EXPECT_EQ(json::parse(second.out)["cached_tokens"],
            json::parse(second.out)["prompt_tokens"].get<int>() - 1);
  const CommandResult other = run_command(common + " --method far:pi --near 300");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err, "was saved with plan")) << other.err;
  const CommandResult exported =
      run_command("export " + kModel + " --method far:pi --ctx 4k -o " + folder_.file("out.gguf"));
  EXPECT_NE(exported.exit_code, 0);
  EXPECT_TRUE(contains(exported.err, "no file can express")) << exported.err;
}

TEST_F(ElasticCommand, NeverOverwritesAFileThatIsNotASession) {
  const std::string before = read_file(folder_.file("a.txt"));
  const CommandResult r =
      run_command("generate " + kModel + " -p Hi -n 1 --session " + folder_.file("a.txt"));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "is not a session")) << r.err;
  EXPECT_EQ(read_file(folder_.file("a.txt")), before);
}

TEST_F(ElasticCommand, FindsNeedlesWhileTheContextGrows) {
  const CommandResult r = run_command(
      "eval needle " + kModel + " --methods 'pro,elastic:pro(headroom=1.25)' --lengths 1100 " +
      "--depths 50 --form planted --haystack " + folder_.file("a.txt") + " --json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  int rows = 0;
  const json results = json::parse(r.out);
  for (const json& row : results["results"])
    rows += row["method"] == "elastic:pro(headroom=1.25)" ? 1 : 0;
  EXPECT_GT(rows, 0);
}

}  // namespace
}  // namespace mrrope
