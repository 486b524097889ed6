// SPDX-License-Identifier: Apache-2.0
// The real command on the real tiny model.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
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

using test::contains;
using test::lemmas;

class EvalCommand : public testing::Test {
 protected:
  EvalCommand() {
    write_file(folder_.file("a.txt"), lemmas(0, 40));
    write_file(folder_.file("b.txt"), "A second text. " + lemmas(0, 40));
  }
  CommandResult ppl(const std::string& arguments) {
    return run_command("eval ppl " + kModel + " --text " + folder_.file("a.txt") + " --text " +
                       folder_.file("b.txt") + " " + arguments);
  }
  TempFolder folder_;
};

TEST_F(EvalCommand, PrintsATableAndWritesTheFolder) {
  const std::string out = folder_.file("run");
  const CommandResult r = ppl("--methods none,pro --scale 4 --lengths 128,256,512 -o " + out);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "none")) << r.out;
  EXPECT_TRUE(contains(r.out, "pro"));
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
  const CommandResult again = ppl("--methods none,pro --scale 4 --lengths 128,256,512 -o " + out);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(read_file(out + "/results.json"), before);
  EXPECT_EQ(again.out, r.out);
  // Another command does not mix with it.
  EXPECT_EQ(ppl("--methods none,uni --scale 4 --lengths 128,256,512 -o " + out).exit_code, 2);
}

TEST_F(EvalCommand, ReadsAPlanFile) {
  const std::string plan = folder_.file("plan.json");
  ASSERT_EQ(run_command("plan " + kModel + " --method uni --ctx 4k -o " + plan).exit_code, 0);
  const CommandResult r = ppl("--plan " + plan + " --method none --lengths 64,256 --json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  bool found = false;
  const json printed = json::parse(r.out);
  for (const json& row : printed["results"]) found |= row["method"] == plan;
  EXPECT_TRUE(found) << r.out;
}

TEST_F(EvalCommand, UsesTheBundledTextsByDefaultAndSaysSo) {
  const CommandResult r =
      run_command("eval ppl " + kModel + " --method none --ctx 128 --samples 1 --kl-positions 0");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "no texts given: using the bundled ones")) << r.err;
  EXPECT_TRUE(contains(r.out, "1 document")) << r.out;
}

TEST_F(EvalCommand, DryRunPrintsTheCost) {
  const CommandResult r = ppl("--methods none,pro --ctx 512 --dry-run");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  for (const char* part :
       {"2 documents x 2 methods", "2048 tokens", "KV cache", "about ", " tokens/s (timed just now",
        "fewer --methods, --lengths or --samples"}) {
    EXPECT_TRUE(contains(r.out, part)) << r.out;
  }
  for (const char* part : {"loading the model", "timing the model on "}) {
    EXPECT_TRUE(contains(r.err, part)) << r.err;
  }
  EXPECT_EQ(ppl("--methods pro,pro --ctx 512 --dry-run").exit_code, 2);
  const CommandResult strided = ppl("--methods none --lengths 256 --stride 32");
  EXPECT_EQ(strided.exit_code, 2);
  EXPECT_TRUE(contains(strided.err, "give --lengths 1k,2k,4k instead")) << strided.err;

  const std::string out = folder_.file("run");
  const CommandResult shard = ppl("--method pro --ctx 512 --dry-run --shard 1/3 -o " + out);
  EXPECT_EQ(shard.exit_code, 0) << shard.err;
  EXPECT_TRUE(contains(shard.err, "all 3 shards")) << shard.err;
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(ppl("--method pro --ctx 512 -o " + out).exit_code, 0);
  const CommandResult again = ppl("--method pro --ctx 512 --dry-run -o " + out);
  EXPECT_TRUE(contains(again.err, "the cost is that of a new run")) << again.err;
}

// What takes its place in generate is what is measured.
TEST_F(EvalCommand, MeasuresWhatTakesThePlaceOfTheDefault) {
  const std::string flags = "--lengths 64 --ctx 1500 -ctk q4_0 -fa on --method ";
  const std::string out = folder_.file("instead");
  const CommandResult r = ppl(flags + "auto -o " + out);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "auto: elastic:pro(rung_step=2), unchanged")) << r.err;
  ASSERT_EQ(ppl(flags + "'elastic:pro(rung_step=2)' -o " + out + "-typed").exit_code, 0);
  EXPECT_EQ(json::parse(test::read_file(out + "/run.json"))["methods"][0]["plan"],
            json::parse(test::read_file(out + "-typed/run.json"))["methods"][0]["plan"]);
}

// Flags that the help does not offer have names all the same.
TEST_F(EvalCommand, NamesTheFlagsOfAnEndpoint) {
  for (const char* flag : {"--parallel 3", "--api chat", "--timeout 5", "--vocab x.gguf"}) {
    const CommandResult r = ppl(std::string("--ctx 2k ") + flag);
    EXPECT_EQ(r.exit_code, 2) << r.err;
    const std::string name(flag, std::string_view(flag).find(' '));
    EXPECT_TRUE(contains(r.err, name + " is for an endpoint")) << r.err;
  }
}

TEST_F(EvalCommand, TheReportNamesThePlanThatWasMeasured) {
  const std::string run = folder_.file("low");
  const CommandResult r = ppl(
      "--train-ctx 128 --ctx 512 --lengths 128,512 --methods 'none,pro(low=12,high=50)' -o " + run);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const CommandResult report = run_command("report " + run + " --json");
  const auto next = nlohmann::json::parse(report.out).dump();
  EXPECT_TRUE(contains(next, "--train-ctx 128 --method 'pro(low=12,high=50)'")) << next;
}

TEST_F(EvalCommand, FilesThatAreNotOfARunAreNotReplaced) {
  for (const char* name : {"results.json", "report.html"}) {
    const std::filesystem::path folder = folder_.file(std::string("of-") + name);
    std::filesystem::create_directories(folder);
    write_file(folder / name, "mine");
    const CommandResult r = ppl("--method none --ctx 256 -o " + folder.string());
    EXPECT_EQ(r.exit_code, 2) << name;
    EXPECT_TRUE(contains(r.err, name)) << r.err;
    EXPECT_EQ(test::read_file(folder / name), "mine");
    EXPECT_FALSE(std::filesystem::exists(folder / "journal.jsonl"));
  }
}

TEST_F(EvalCommand, AReportReplacesOnlyReports) {
  const std::string run = folder_.file("runs/one");
  ASSERT_EQ(ppl("--method none --ctx 256 -o " + run).exit_code, 0);
  const std::string runs = folder_.file("runs");
  EXPECT_EQ(run_command("report " + runs).exit_code, 0);
  EXPECT_EQ(run_command("report " + runs).exit_code, 0);  // its own page
  write_file(runs + "/report.html", "mine");
  const CommandResult other = run_command("report " + runs);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err, "mrrope did not write it")) << other.err;
  EXPECT_EQ(test::read_file(runs + "/report.html"), "mine");
}

TEST_F(EvalCommand, AShardPrintsNoTable) {
  const std::string line = "--method none --ctx 256 --shard 1/2 --format csv -o ";
  const CommandResult r = ppl(line + folder_.file("shard"));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_TRUE(contains(r.err, "run: mrrope report")) << r.err;
}

TEST_F(EvalCommand, EveryBadInputHasItsExitCode) {
  EXPECT_EQ(ppl("").exit_code, 2);                                 // no length
  EXPECT_EQ(ppl("--ctx 256 --lengths 512").exit_code, 2);          // past the context
  EXPECT_EQ(ppl("--ctx 256 --lengths 1").exit_code, 2);            // nothing to score
  EXPECT_EQ(ppl("--ctx 256 --method none,none").exit_code, 2);     // one name twice
  EXPECT_EQ(ppl("--ctx 256 --method none -ctk q9").exit_code, 2);  // no such type
  EXPECT_EQ(ppl("--ctx 256 --method none -ub 0").exit_code, 2);
  for (const char* task : {"ppl", "needle", "ruler", "infinitebench", "longbench-v2"}) {
    const CommandResult r =
        run_command(std::string("eval ") + task + " " + kModel + " --samples -3");
    EXPECT_EQ(r.exit_code, 2) << task;
    EXPECT_TRUE(contains(r.err, "-3 not in range") && contains(r.err, "16777216")) << r.err;
  }
  EXPECT_EQ(ppl("--ctx 256 --method none -o /proc/nowhere").exit_code, 1);
  EXPECT_EQ(run_command("eval ppl " + kModel + " --ctx 256 --text /absent").exit_code, 1);
  EXPECT_EQ(run_command("eval ppl " + folder_.file("a.txt") + " --ctx 256").exit_code, 4);
  EXPECT_EQ(run_command("eval").exit_code, 2);
  EXPECT_EQ(run_command("eval fly").exit_code, 2);
  const CommandResult folder =
      run_command("eval ppl " + std::string(MRROPE_GOLDEN_DIR) + "/tiny_config --ctx 256 --text " +
                  folder_.file("a.txt"));
  EXPECT_EQ(folder.exit_code, 3);
  EXPECT_TRUE(contains(folder.err, "convert_hf_to_gguf.py")) << folder.err;
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
        run_command("eval ppl " + kModel + " --ctx 2k --methods none,pro -o " +
                    folder_.file("out") + " --text " + folder_.file("short.txt") + more);
    EXPECT_EQ(r.exit_code, 2) << r.err;
    EXPECT_TRUE(contains(r.err, " tokens, and 512 are needed")) << r.err;
    EXPECT_EQ(r.out, "");
  }
  // Enough for the window and no more.
  write_file(folder_.file("some.txt"), lemmas(0, 20));
  const CommandResult r =
      run_command("eval ppl " + kModel + " --lengths 64,8k --methods none,pro" + " -o " +
                  folder_.file("out2") + " --text " + folder_.file("some.txt"));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "pro: no verdict, no document was measured to 8k")) << r.out;
  EXPECT_TRUE(contains(read_file(folder_.file("out2/report.html")), "no verdict"));
  // A run that has measured nothing yet.
  std::filesystem::resize_file(folder_.file("out2/journal.jsonl"),
                               read_file(folder_.file("out2/journal.jsonl")).find('\n') + 1);
  const CommandResult report = run_command("report " + folder_.file("out2"));
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_TRUE(contains(report.out, "So far: no verdict.")) << report.out;
  EXPECT_FALSE(contains(report.out, "holds beyond")) << report.out;
}

TEST_F(EvalCommand, APipeInARunFolderHangsNothing) {
  const std::string line = "--lengths 64 --methods none -o " + folder_.file("run");
  ASSERT_EQ(ppl(line).exit_code, 0);
  for (const std::string name : {"run.json", "journal.jsonl", "report.html"}) {
    std::filesystem::rename(folder_ / ("run/" + name), folder_ / "kept");
    ASSERT_EQ(mkfifo((folder_ / ("run/" + name)).c_str(), 0600), 0);
    for (const std::string& command :
         {"report " + folder_.file("run"),
          "merge " + folder_.file("run") + " -o " + folder_.file("m")}) {
      EXPECT_NE(run_command(command, "timeout 60").exit_code % 124, 0) << command;
    }
    EXPECT_NE(ppl(line).exit_code, 0) << name;
    std::filesystem::remove(folder_ / ("run/" + name));
    std::filesystem::rename(folder_ / "kept", folder_ / ("run/" + name));
  }
}

TEST_F(EvalCommand, FindsNeedles) {
  const std::string out = folder_.file("needles");
  const std::string line = "eval needle " + kModel + " --form planted --methods none,pro " +
                           "--lengths 256,512 --depths 0,50 --samples 2 -t 2 --haystack " +
                           folder_.file("a.txt") + " -o " + out;
  const CommandResult r = run_command(line);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "ROUGE-1 recall")) << r.out;
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
  const CommandResult again = run_command(line);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(read_file(out + "/results.json"), bytes);
  EXPECT_EQ(again.out, r.out);

  const std::string start =
      "eval needle " + kModel + " --lengths 256 --haystack " + folder_.file("a.txt");
  EXPECT_EQ(run_command(start + " --depths 101").exit_code, 2);
  EXPECT_EQ(run_command(start + " --form haiku").exit_code, 2);
  EXPECT_EQ(run_command(start + " --form chat").exit_code, 3);  // the tiny model has no template
  EXPECT_EQ(run_command(start + " --needle alone").exit_code, 2);
  const CommandResult short_text =
      run_command("eval needle " + kModel + " --lengths 64k --haystack " + folder_.file("a.txt"));
  EXPECT_EQ(short_text.exit_code, 2);
  EXPECT_TRUE(contains(short_text.err, "fewer than the longest length")) << short_text.err;
  const CommandResult dry = run_command(start + " --dry-run");
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_TRUE(contains(dry.out, "form completion")) << dry.out;
}

TEST(GenerateCommand, ContinuesAPromptTheSameWayTwice) {
  const std::string line = "generate " + kModel + " -p 'Theorem 1. Let $G$ be a' -n 16 --json";
  const CommandResult a = run_command(line);
  ASSERT_EQ(a.exit_code, 0) << a.err;
  EXPECT_EQ(run_command(line).out, a.out);
  const json j = json::parse(a.out);
  EXPECT_EQ(j["completion_tokens"], 16);
  EXPECT_EQ(j["finish"], "length");
  EXPECT_FALSE(j["text"].get<std::string>().empty());
}

TEST(GenerateCommand, StreamsTextAndObeysStop) {
  const std::string start = "generate " + kModel + " -p '1 2 3 4 5 6 7 8' -n 12";
  const CommandResult all = run_command(start);
  ASSERT_EQ(all.exit_code, 0) << all.err;
  ASSERT_GT(all.out.size(), 4u);
  const CommandResult stopped = run_command(start + " --stop '" + all.out.substr(1, 1) + "'");
  EXPECT_LT(stopped.out.size(), all.out.size());
}

TEST(GenerateCommand, RefusesWhatDoesNotFit) {
  const TempFolder folder;
  write_file(folder.file("long.txt"), lemmas(0, 60));
  const CommandResult r = run_command("generate " + kModel + " -f " + folder.file("long.txt"));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "do not fit in a context of 1024")) << r.err;
  EXPECT_EQ(run_command("generate " + kModel).exit_code, 2);
  EXPECT_EQ(run_command("generate " + kModel + " -f /absent").exit_code, 1);
  EXPECT_EQ(run_command("generate " + kModel + " -p x --methods uni,pro --ctx 2k").exit_code, 2);
  EXPECT_EQ(run_command("generate " + kModel + " -p x -n 0").exit_code, 2);
  EXPECT_EQ(run_command("generate " + kModel + " -p x --temp -1").exit_code, 2);
  const CommandResult chat = run_command("generate " + kModel + " --chat -p hello");
  EXPECT_EQ(chat.exit_code, 3) << chat.err;  // the tiny model has no chat template
  const CommandResult huge =
      run_command("generate " + kModel + " --ctx 512m --method pro -p x --dry-run");
  EXPECT_EQ(huge.exit_code, 1) << huge.err;
  EXPECT_TRUE(contains(huge.out, "KV cache")) << huge.out;
  EXPECT_TRUE(contains(huge.err, "does not fit")) << huge.err;
  // Lengths that llama.cpp rounds up.
  EXPECT_EQ(run_command("generate " + kModel + " --ctx 1500 -p x -n 20 --dry-run").exit_code, 0);
  EXPECT_EQ(run_command("generate " + kModel + " --ctx 100 -p 'Let n' -n 200").exit_code, 2);
  const CommandResult no_file = run_command("generate " + kModel + " -f /tmp -p x -n 3");
  EXPECT_EQ(no_file.exit_code, 1);
  EXPECT_EQ(run_command("generate " + kModel + " -p x -n 3 --system y").exit_code, 2);
  const CommandResult nowhere =
      run_command("generate " + kModel + " -p x -n 3 --session " + folder.file("no/such/session"));
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_TRUE(contains(nowhere.err, "mkdir -p")) << nowhere.err;
  EXPECT_TRUE(contains(no_file.err, "it is a folder")) << no_file.err;
  const CommandResult dry = run_command("generate " + kModel + " --ctx 2k -p 'a b c' --dry-run");
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_TRUE(contains(dry.out, "tokens to read")) << dry.out;
  EXPECT_TRUE(contains(dry.out, " tokens/s (timed just now")) << dry.out;
  EXPECT_TRUE(contains(dry.err, "loading the model")) << dry.err;
  // Without a prompt there is nothing to time.
  const CommandResult memory = run_command("generate " + kModel + " --ctx 2k --dry-run");
  EXPECT_EQ(memory.exit_code, 0) << memory.err;
  EXPECT_TRUE(contains(memory.out, "KV cache")) << memory.out;
  EXPECT_FALSE(contains(memory.out + memory.err, "tokens/s")) << memory.out;
  const CommandResult too_big = run_command("generate " + kModel + " --ctx 512m --method pro -p x");
  EXPECT_EQ(too_big.exit_code, 5) << too_big.err;
  EXPECT_TRUE(contains(too_big.err, "q8_0")) << too_big.err;
}

}  // namespace
}  // namespace mrrope
