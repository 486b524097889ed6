// SPDX-License-Identifier: Apache-2.0
// The benchmarks end to end: the real command on the real tiny model. It knows only the form its
// needles were planted in, so scores may be low: the tests check that the run works as a whole.
#include <gtest/gtest.h>

#include "support/command.h"

namespace mrrope {
namespace {

TEST(RulerCommand, RunsRetrievalFromOneToFourThousandTokens) {
  const TempFolder folder;
  const std::string out = folder.file("run");
  const std::string line = "eval ruler " + kModel +
                           " --methods pro --lengths 1k,4k --samples 1 -t 2 "
                           "--tasks niah_single_1,niah_multikey_2 -o " +
                           out;
  const CommandResult r = expect_run(line, 0, {"built-in generator", "effective"});
  const json results = json::parse(read_file(out + "/results.json"));
  int tasks = 0;
  int losses = 0;
  for (const json& row : results["results"]) {
    EXPECT_TRUE(row["value"].is_number()) << row;
    tasks += row["task"] != "ruler" ? 1 : 0;
    losses += row["metric"] == "answer_loss" ? 1 : 0;
  }
  EXPECT_EQ(tasks, 8);
  EXPECT_EQ(losses, 6);
  EXPECT_EQ(results["answers"], 4);
  const json run = json::parse(read_file(out + "/run.json"));
  EXPECT_EQ(run["settings"]["frame"]["chat"], false);
  EXPECT_EQ(run["settings"]["frame"]["bos"], true);
  // The same command again computes nothing and says the same.
  const std::string before = read_file(out + "/results.json");
  const CommandResult again = expect_run(line);
  EXPECT_EQ(again.out, r.out);
  EXPECT_EQ(read_file(out + "/results.json"), before);
}

TEST(RulerCommand, ShowsPromptsAndRefusesBadInput) {
  const std::string start = "eval ruler " + kModel + " --methods none ";
  expect_run(start + "--lengths 1k --tasks vt --show-prompt", 0,
             {"=== ruler/vt at 1024", "Question: which names have the value"});
  const CommandResult bare =
      run_command(start + "--lengths 1k --tasks vt --show-prompt --answer-prefix off");
  EXPECT_FALSE(contains(bare.out, "namely: \n=== expected")) << bare.out;
  expect_run(start + "--lengths 256 --tasks cwe", 2,
             {"cwe cannot be made at 256 tokens", "--lengths of "});
  expect_run(start + "--lengths 1k --chat on --tasks vt", 3);
  expect_run(start + "--lengths 1k --data /absent", 1);
  expect_run(start + "--lengths 1k --squad /absent", 1);
  expect_run(start + "--lengths 1k --prompts /absent", 1);
  expect_run(start + "--lengths 1k --tasks niah_single_1 --samples 3 --dry-run", 0,
             {"3 prompts, at most 3072 tokens"});
}

TEST(InfinitebenchCommand, RunsGeneratedAndOfficialFiles) {
  const TempFolder folder;
  const CommandResult made =
      expect_run("eval infinitebench " + kModel +
                 " --methods none --lengths 768 --samples 2 -t 2 --tasks passkey,math_find --json");
  const json results = json::parse(made.out);
  EXPECT_EQ(results["answers"], 4);
  EXPECT_EQ(results["results"][0]["metric"], "official");
  write_file(
      folder.file("passkey.jsonl"),
      R"({"id": 3, "context": "The pass key is 12345.", "input": "Which?", "answer": ["12345"]})");
  const std::string data = "eval infinitebench " + kModel +
                           " --methods none --ctx 256 -t 2 --data " + folder.path().string() +
                           " --tasks ";
  expect_run(data + "passkey", 0, {"1 items, not 100", "lenient in percent"});
  expect_run(data + "code_run", 1);
  expect_run(data + "passkey --min-tokens 9 --max-tokens 3", 2);
  write_file(folder.file("passkey.jsonl"), "{\"id\": 3}\n");
  expect_run(data + "passkey", 4, {"passkey.jsonl:1"});
}

TEST(LongbenchCommand, ComparesLettersByDomain) {
  const TempFolder folder;
  const std::string domain = "Single-Document QA";
  const json items = {longbench_item("a", domain, "A theorem."),
                      longbench_item("b", domain, std::string(4000, 'x'))};
  write_file(folder.file("data.json"), items.dump());
  const std::string line = "eval longbench-v2 " + kModel +
                           " --methods none --ctx 256 -t 2 --data " + folder.file("data.json");
  expect_run(line + " --mode letters", 0, {"1 of 2 items", "SD"});
  expect_run(line + " --mode letters --longer truncate", 0, {"1 of 2 prompts"});
  expect_run(line + " --max-tokens 512", 2);
}

}  // namespace
}  // namespace mrrope
