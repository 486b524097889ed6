// SPDX-License-Identifier: Apache-2.0
// The real command on the real tiny model.
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

TEST_F(EvalCommand, ReadsAPlanFile) {
  const std::string plan = folder_.file("plan.json");
  expect_run("plan " + kModel + " --method uni --ctx 4k -o " + plan);
  const CommandResult r = expect_ppl("--plan " + plan + " --method none --lengths 64,256 --json");
  bool found = false;
  const json printed = json::parse(r.out);
  for (const json& row : printed["results"]) found |= row["method"] == plan;
  EXPECT_TRUE(found) << r.out;
}

TEST_F(EvalCommand, UsesTheBundledTextsByDefaultAndSaysSo) {
  expect_run("eval ppl " + kModel + " --method none --ctx 128 --samples 1 --kl-positions 0", 0,
             {"no texts given: using the bundled ones", "1 document"});
}

TEST_F(EvalCommand, DryRunPrintsTheCost) {
  expect_ppl("--methods none,pro --ctx 512 --dry-run", 0,
             {"2 documents x 2 methods", "2048 tokens", "KV cache", "time not known yet",
              "fewer --method, --lengths, --documents or --samples"});
  // What a run has read is remembered.
  const std::string kept = "XDG_CACHE_HOME=" + folder_.file("cache");
  expect_run("inspect " + kModel + " --time", 0, {"reading", " tokens/s, as measured on this machine"}, kept);
  expect_run("eval ppl " + kModel + " --method pro --ctx 512 --dry-run", 0,
             {"about ", " tokens/s, as measured on this machine"}, kept);
  const std::string out = folder_.file("run");
  expect_ppl("--method pro --ctx 512 --dry-run --shard 1/3 -o " + out, 0, {"all 3 shards"});
  EXPECT_FALSE(std::filesystem::exists(out));
  expect_ppl("--method pro --ctx 512 -o " + out);
  expect_ppl("--method pro --ctx 512 --dry-run -o " + out, 0, {"the cost is that of a new run"});
}

// What takes its place in generate is what is measured.
TEST_F(EvalCommand, MeasuresWhatTakesThePlaceOfTheDefault) {
  const std::string flags = "--lengths 64 --ctx 1500 -ctk q4_0 -fa on --method ";
  const std::string out = folder_.file("instead");
  expect_ppl(flags + "auto -o " + out, 0, {"auto: elastic:pro(rung_step=2), unchanged"});
  expect_ppl(flags + "'elastic:pro(rung_step=2)' -o " + out + "-typed");
  EXPECT_EQ(json::parse(read_file(out + "/run.json"))["methods"][0]["plan"],
            json::parse(read_file(out + "-typed/run.json"))["methods"][0]["plan"]);
}

// Flags that the help does not offer have names all the same.
TEST_F(EvalCommand, NamesTheFlagsOfAnEndpoint) {
  for (const char* flag : {"--parallel 3", "--api chat", "--timeout 5", "--vocab x.gguf"}) {
    const std::string name(flag, std::string_view(flag).find(' '));
    expect_ppl(std::string("--ctx 2k ") + flag, 2, {name + " is for an endpoint"});
  }
}

TEST_F(EvalCommand, TheReportNamesThePlanThatWasMeasured) {
  const std::string run = folder_.file("low");
  expect_ppl(
      "--train-ctx 128 --ctx 512 --lengths 128,512 --methods 'none,pro(low=12,high=50)' -o " + run);
  const CommandResult report = run_command("report " + run + " --json");
  const auto next = json::parse(report.out).dump();
  EXPECT_TRUE(contains(next, "--train-ctx 128 --method 'pro(low=12,high=50)'")) << next;
}

TEST_F(EvalCommand, FilesThatAreNotOfARunAreNotReplaced) {
  for (const char* name : {"results.json", "report.html"}) {
    const std::filesystem::path folder = folder_.file(std::string("of-") + name);
    std::filesystem::create_directories(folder);
    write_file(folder / name, "mine");
    expect_ppl("--method none --ctx 256 -o " + folder.string(), 2, {name});
    EXPECT_EQ(read_file(folder / name), "mine");
    EXPECT_FALSE(std::filesystem::exists(folder / "journal.jsonl"));
  }
}

TEST_F(EvalCommand, AReportReplacesOnlyReports) {
  const std::string run = folder_.file("runs/one");
  expect_ppl("--method none --ctx 256 -o " + run);
  const std::string runs = folder_.file("runs");
  expect_run("report " + runs);
  expect_run("report " + runs);  // its own page
  write_file(runs + "/report.html", "mine");
  expect_run("report " + runs, 2, {"mrrope did not write it"});
  EXPECT_EQ(read_file(runs + "/report.html"), "mine");
}

TEST_F(EvalCommand, AShardPrintsNoTable) {
  const std::string line = "--method none --ctx 256 --shard 1/2 --format csv -o ";
  const CommandResult r = expect_ppl(line + folder_.file("shard"), 0, {"run: mrrope report"});
  EXPECT_EQ(r.out, "");
}

TEST_F(EvalCommand, EveryBadInputHasItsExitCode) {
  expect_ppl("--ctx 256 --method none -ctk q9", 2);  // no such type
  expect_ppl("--ctx 256 --method none -ub 0", 2);
  for (const char* task : {"ppl", "needle", "ruler", "infinitebench", "longbench-v2"}) {
    expect_run(std::string("eval ") + task + " " + kModel + " --samples -3", 2,
               {"-3 not in range", "16777216"});
  }
  expect_ppl("--ctx 256 --method none -o /proc/nowhere", 1);
  expect_run("eval ppl " + folder_.file("a.txt") + " --ctx 256", 4);
  expect_run("eval fly", 2);
  expect_run("eval ppl " + std::string(MRROPE_GOLDEN_DIR) + "/tiny_config --ctx 256 --text " +
                 folder_.file("a.txt"),
             3, {"convert_hf_to_gguf.py"});
  write_file(folder_.file("empty.txt"), "");
  EXPECT_NE(run_command("eval ppl " + kModel + " --ctx 256 --method none --text " +
                        folder_.file("empty.txt"))
                .exit_code,
            0);
}

TEST_F(EvalCommand, JudgesNothingWithoutData) {
  write_file(folder_.file("short.txt"), "Twenty-six bytes of text.\n");
  for (const char* more : {"", " --dry-run"}) {
    const CommandResult r =
        expect_run("eval ppl " + kModel + " --ctx 2k --methods none,pro -o " + folder_.file("out") +
                       " --text " + folder_.file("short.txt") + more,
                   2, {" tokens, and 512 are needed"});
    EXPECT_EQ(r.out, "");
  }
  // Enough for the window and no more.
  write_file(folder_.file("some.txt"), lemmas(0, 20));
  expect_run("eval ppl " + kModel + " --lengths 64,8k --methods none,pro" + " -o " +
                 folder_.file("out2") + " --text " + folder_.file("some.txt"),
             0, {"No verdict: no document was measured to 8k"});
  EXPECT_TRUE(contains(read_file(folder_.file("out2/report.html")), "No verdict"));
  // A run that has measured nothing yet.
  std::filesystem::resize_file(folder_.file("out2/journal.jsonl"),
                               read_file(folder_.file("out2/journal.jsonl")).find('\n') + 1);
  const CommandResult report =
      expect_run("report " + folder_.file("out2"), 0, {"So far: no verdict."});
  EXPECT_FALSE(contains(report.out, "holds beyond")) << report.out;
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

  const std::string start =
      "eval needle " + kModel + " --lengths 256 --haystack " + folder_.file("a.txt");
  expect_run(start + " --depths 101", 2);
  expect_run(start + " --form haiku", 2);
  expect_run(start + " --form chat", 3);  // the tiny model has no template
  expect_run("eval needle " + kModel + " --lengths 64k --haystack " + folder_.file("a.txt"), 2,
             {"fewer than the longest length"});
  expect_run(start + " --dry-run", 0, {"form completion"});
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

TEST(GenerateCommand, RefusesWhatDoesNotFit) {
  const TempFolder folder;
  write_file(folder.file("long.txt"), lemmas(0, 60));
  expect_run("generate " + kModel + " -f " + folder.file("long.txt"), 2,
             {"do not fit in a context of 1024"});
  expect_run("generate " + kModel, 2);
  expect_run("generate " + kModel + " -f /absent", 1);
  expect_run("generate " + kModel + " -p x --methods uni,pro --ctx 2k", 2);
  expect_run("generate " + kModel + " -p x -n 0", 2);
  expect_run("generate " + kModel + " -p x --temp -1", 2);
  expect_run("generate " + kModel + " --chat -p hello", 3);  // it has no chat template
  expect_run("generate " + kModel + " --ctx 512m --method pro -p x --dry-run", 1,
             {"KV cache", "does not fit"});
  // Lengths that llama.cpp rounds up.
  expect_run("generate " + kModel + " --ctx 1500 -p x -n 20 --dry-run");
  expect_run("generate " + kModel + " --ctx 100 -p 'Let n' -n 200", 2);
  expect_run("generate " + kModel + " -f /tmp -p x -n 3", 1, {"it is a folder"});
  expect_run("generate " + kModel + " -p x -n 3 --system y", 2);
  expect_run("generate " + kModel + " -p x -n 3 --session " + folder.file("no/such/session"), 2,
             {"mkdir -p"});
  expect_run("generate " + kModel + " --ctx 2k -p 'a b c' --dry-run", 0,
             {"\n4 tokens to read", "time not known yet: mrrope inspect MODEL --time"});
  expect_run("generate " + kModel + " --ctx 100 -p 'a b c' -n 200 --dry-run", 1,
             {"a prompt of 4 tokens and an answer of up to 200 do not fit", "--ctx 204"});
  const std::string kept = "XDG_CACHE_HOME=" + folder.file("cache");
  expect_run("generate " + kModel + " --ctx 4k -n 1 -f " + folder.file("long.txt"), 0, {}, kept);
  expect_run("generate " + kModel + " --ctx 4k --dry-run", 0,
             {"KV cache", "up to 4096 tokens to read", " tokens/s, as measured on this machine"},
             kept);
  expect_run("generate " + kModel + " --ctx 512m --method pro -p x", 5, {"q8_0"});
}

}  // namespace
}  // namespace mrrope
