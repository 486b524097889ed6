// SPDX-License-Identifier: Apache-2.0
// The real command on the real tiny model. tests/transcripts/runs.txt has what needs no numbers.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/command.h"

namespace mrrope {
namespace {

class EvalCommand : public testing::Test {
 protected:
  EvalCommand() {
    write_file(folder_.file("a.txt"), lemmas(0, 40));
    write_file(folder_.file("b.txt"), "A second text. " + lemmas(0, 40));
  }
  CommandResult expect_ppl(const std::string& arguments, int exit_code = 0,
                           std::initializer_list<std::string> words = {}) {
    return expect_run(ppl_ + arguments, exit_code, words);
  }
  TempFolder folder_;
  const std::string ppl_ = "eval ppl " + kModel + " --text " + folder_.file("a.txt") + " --text " +
                           folder_.file("b.txt") + " ";
};

TEST_F(EvalCommand, PrintsATableAndWritesTheFolder) {
  const std::string out = folder_.file("run");
  const CommandResult r = expect_ppl("--methods none,pro --scale 4 --lengths 128,256,512 -o " + out,
                                     0, {"none", "pro"});
  const json results = json::parse(read_file(out + "/results.json"));
  int found = 0;
  for (const json& row : results["results"]) {
    if (row["metric"] != "perplexity") continue;
    ++found;
    EXPECT_EQ(row["task"], "ppl");
    EXPECT_EQ(row["n"], 2);
    EXPECT_GT(row["value"].get<double>(), 1.5);
    EXPECT_LT(row["value"].get<double>(), 60);
    EXPECT_EQ(row["scale"], row["method"] == "none" ? 1 : 4);
  }
  EXPECT_EQ(found, 6);
  EXPECT_EQ(json::parse(read_file(out + "/run.json"))["seed"], 1);

  // The same command again computes nothing and prints the same.
  const std::string before = read_file(out + "/results.json");
  const CommandResult again =
      expect_ppl("--methods none,pro --scale 4 --lengths 128,256,512 -o " + out);
  EXPECT_EQ(read_file(out + "/results.json"), before);
  EXPECT_EQ(again.out, r.out);
  // Another command does not mix with it.
  expect_ppl("--methods none,uni --scale 4 --lengths 128,256,512 -o " + out, 2);
}

TEST_F(EvalCommand, APipeInARunFolderHangsNothing) {
  const std::string line = "--lengths 64 --methods none -o " + folder_.file("run");
  expect_ppl(line);
  for (const std::string name : {"run.json", "journal.jsonl", "report.html"}) {
    std::filesystem::rename(folder_ / ("run/" + name), folder_ / "kept");
    ASSERT_EQ(mkfifo((folder_ / ("run/" + name)).c_str(), 0600), 0);
    for (const std::string& command :
         {"report " + folder_.file("run"),
          "merge " + folder_.file("run") + " -o " + folder_.file("m")}) {
      EXPECT_NE(run_command(command, "timeout 60").exit_code % 124, 0) << command;
    }
    EXPECT_NE(run_command(ppl_ + line).exit_code, 0) << name;
    std::filesystem::remove(folder_ / ("run/" + name));
    std::filesystem::rename(folder_ / "kept", folder_ / ("run/" + name));
  }
}

TEST_F(EvalCommand, FindsNeedles) {
  const std::string out = folder_.file("needles");
  const std::string line = "eval needle " + kModel + " --form planted --methods none,pro " +
                           "--lengths 256,512 --depths 0,50 --samples 2 -t 2 --haystack " +
                           folder_.file("a.txt") + " -o " + out;
  const CommandResult r = expect_run(line, 0, {"ROUGE-1 recall"});
  EXPECT_FALSE(contains(r.out, "\x1b"));
  const std::string bytes = read_file(out + "/results.json");
  const json results = json::parse(bytes);
  int found = 0;
  for (const json& row : results["results"]) {
    EXPECT_EQ(row["task"], "needle");
    if (row.contains("depth") || row["metric"] != "contains") continue;
    ++found;
    EXPECT_EQ(row["n"], 4);
    EXPECT_GE(row["value"].get<double>(), 0.5) << row;  // inside its window it finds nearly all
  }
  EXPECT_EQ(found, 4);
  const CommandResult again = expect_run(line);
  EXPECT_EQ(read_file(out + "/results.json"), bytes);
  EXPECT_EQ(again.out, r.out);
}

// All needles of a text are asked for after it was read once.
TEST_F(EvalCommand, AsksSeveralQuestionsOfOneText) {
  const std::string start = "eval needle " + kModel + " --form planted --methods none,pro -t 2 " +
                            "--haystack " + folder_.file("a.txt");
  const std::string line = start + " --lengths 256,512 --samples 2 --questions 4 -o ";
  const CommandResult r =
      expect_run(line + folder_.file("several"), 0,
                 {"4 depths x 2 texts", "Questions about each text: 4.", "12.5 %"});
  const json results = json::parse(read_file(folder_ / "several/results.json"));
  EXPECT_EQ(results["questions_per_text"], 4);
  for (const json& row : results["results"]) EXPECT_EQ(row["n"], 2) << row;
  EXPECT_LT(results["tokens"].get<double>(), 0.5 * results["naive_tokens"].get<double>());
  EXPECT_EQ(expect_run(line + folder_.file("several")).out, r.out);
  for (const char* part : {"1", "2"}) {
    expect_run(line + folder_.file(std::string("part") + part) + " --shard " + part + "/2");
  }
  expect_run("report " + folder_.file("part1") + " " + folder_.file("part2") + " -o " +
             folder_.file("joined"));
  EXPECT_EQ(read_file(folder_ / "joined/results.json"),
            read_file(folder_ / "several/results.json"));

  expect_run(start + " --lengths 512 --questions 4 --dry-run", 0, {"4 needles x 2 methods"});
  for (const char* n : {"0", "-3", "101", "many"}) {
    expect_run(start + " --lengths 512 --questions " + n, 2, {"--questions"});
  }
  expect_run(start + " --lengths 512 --questions 5 --depths 0,50", 2, {"leave out one of them"});
  expect_run(start + " --lengths 256,512 --questions 90", 2,
             {"256 tokens have room for only ", "give --questions "});
}

TEST(GenerateCommand, StreamsTextAndObeysStop) {
  const std::string start = "generate " + kModel + " -p '1 2 3 4 5 6 7 8' -n 12";
  const CommandResult all = expect_run(start);
  ASSERT_GT(all.out.size(), 4u);
  const CommandResult stopped = run_command(start + " --stop '" + all.out.substr(1, 1) + "'");
  EXPECT_LT(stopped.out.size(), all.out.size());
}

}  // namespace
}  // namespace mrrope
