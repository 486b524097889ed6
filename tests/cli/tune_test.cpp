// SPDX-License-Identifier: Apache-2.0
// tune with the real command on the real tiny model, treated as one with a window of 128.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "support/command.h"
#include "support/gguf_writer.h"

namespace mrrope {
namespace {

class TuneCommand : public testing::Test {
 protected:
  TuneCommand() {
    for (int i = 0; i < 4; ++i) {
      write_file(folder_.file("texts/" + std::to_string(i) + ".txt"), lemmas(100 * i, 12));
    }
  }
  std::string line(const std::string& arguments, const std::string& ctx = "256",
                   const std::string& model = kModel) const {
    return "tune " + model + " --train-ctx 128 --ctx " + ctx +
           " -t 1 --form planted --answers 2 --text " + folder_.file("texts") + " " + arguments;
  }
  CommandResult tune(const std::string& arguments, const std::string& ctx = "256",
                     const std::string& model = kModel) const {
    return run_command(line(arguments, ctx, model));
  }
  TempFolder folder_;
};

TEST_F(TuneCommand, DryRunPrintsTheCost) {
  const CommandResult whole = tune("--dry-run");
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_TRUE(contains(whole.out, "proof: 2 documents")) << whole.out;
  EXPECT_TRUE(contains(whole.out, "time not known yet")) << whole.out;
  const std::string kept = "XDG_CACHE_HOME=" + folder_.file("cache");
  run_command("inspect " + kModel + " --time -t 1", kept);
  EXPECT_TRUE(contains(run_command(line("--dry-run", "256", kModel), kept).out, " to search, "));
  const CommandResult search = tune("--dry-run --proof off");
  EXPECT_FALSE(contains(search.out, "proof")) << search.out;
  EXPECT_EQ(tune("--dry-run --budget 1e9").exit_code, 0);
  EXPECT_EQ(tune("--dry-run --json").exit_code, 2);
}

TEST_F(TuneCommand, FindsAPlanAndReportsTheProof) {
  const std::string out = folder_.file("plan.json");
  const CommandResult r = tune("--budget 7 --proof 1 --json -o " + out);
  ASSERT_TRUE(r.exit_code == 0 || r.exit_code == 6) << r.err;
  const json results = json::parse(r.out);
  EXPECT_LE(results["passes"], 7);
  EXPECT_EQ(results["proof"]["published"].size(), 8u);
  EXPECT_EQ(results["proof"]["documents"], 2);
  EXPECT_EQ(results["proof"]["better"], r.exit_code == 0);
  EXPECT_EQ(results["proof"]["tuned"]["needles"]["n"], 10);
  EXPECT_EQ(results["factors"]["chosen"].size(), 64u);
  if (r.exit_code == 6) {
    EXPECT_TRUE(contains(r.err, "not better than every published")) << r.err;
    const std::string recommended = results["proof"]["recommended"];
    EXPECT_TRUE(contains(r.err, recommended));
  }
  // Another search in the same folder may find another plan, and proves that.
  const CommandResult more = tune("--budget 12 --prefer 0 --proof 1 -o " + out);
  EXPECT_TRUE(more.exit_code == 0 || more.exit_code == 6) << more.err;

  // What was written is a plan like any other.
  expect_run("plan --plan " + out);
  expect_run("plan --plan " + folder_.file("plan.tune/found.json"));
  expect_run("eval ppl " + kModel + " --train-ctx 128 --plan " + out + " --lengths 256 --text " +
             folder_.file("texts/0.txt"));

  // The report of the folder shows the search and its proof.
  const CommandResult report = expect_run("report " + folder_.file("plan.tune"));
  EXPECT_FALSE(contains(report.err, "skipped")) << report.err;
  EXPECT_TRUE(contains(report.out, "passes among")) << report.out;
  const std::string page = read_file(folder_.file("plan.tune/report.html"));
  for (const char* part : {"Search for a better plan", "data-name=\"front\"", "data-name=\"tried\"",
                           "data-name=\"best\"", "data-name=\"chosen\"", "held-out documents"}) {
    EXPECT_TRUE(contains(page, part)) << part;
  }
}

TEST_F(TuneCommand, SameSeedGivesTheSamePlanEvenAfterAKill) {
  const std::string whole = folder_.file("whole.json");
  const std::string cut = folder_.file("cut.json");
  ASSERT_EQ(tune("--budget 7 --proof off -o " + whole).exit_code, 0);
  const auto journal = [&](const char* name) {
    return read_file(folder_.file(std::string(name) + ".tune/search/journal.jsonl"));
  };
  {
    RunningCommand command(line("--budget 7 --proof off -o " + cut));
    const auto path = folder_.file("cut.tune/search/journal.jsonl");
    while (lines_in(path) < 3 && command.running()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    command.send(SIGKILL);
    EXPECT_EQ(command.wait().exit_code, 128 + SIGKILL);
  }
  const CommandResult again = tune("--budget 7 --proof off -o " + cut);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(contains(again.err, "resuming: ")) << again.err;
  EXPECT_EQ(read_file(cut), read_file(whole));
  EXPECT_EQ(journal("cut"), journal("whole"));
  // Other settings in the same folder: what was measured comes from the journal.
  const CommandResult third =
      tune("--budget 7 --proof off -o " + whole + " --start-plan " + cut + " --prefer perplexity");
  ASSERT_EQ(third.exit_code, 0) << third.err;
  EXPECT_TRUE(contains(third.err, "resuming: ")) << third.err;
}

TEST_F(TuneCommand, SearchesALadder) {
  const std::string out = folder_.file("ladder.json");
  const CommandResult r = tune("--method elastic:power --budget 7 --proof off -o " + out);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "elastic:"));
  EXPECT_GT(json::parse(read_file(out))["rungs"].size(), 1u);
}

TEST_F(TuneCommand, RefusesBadInput) {
  const CommandResult budget = tune("--budget 1 -o " + folder_.file("refused.json"));
  EXPECT_EQ(budget.exit_code, 2);
  EXPECT_TRUE(contains(budget.err, "budget of 1")) << budget.err;
  EXPECT_TRUE(contains(budget.err, "give --budget"));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("refused.tune")));

  const CommandResult few = tune("", "16k");
  EXPECT_EQ(few.exit_code, 2);
  EXPECT_TRUE(contains(few.err, "not enough text")) << few.err;

  const std::string learned = folder_.file("gpt2.gguf");
  test::GgufWriter positions;
  positions.text("general.architecture", "gpt2").u32("gpt2.context_length", 1024);
  write_file(learned, positions.bytes());
  const CommandResult model = tune("", "256", learned);
  EXPECT_EQ(model.exit_code, 3) << model.err;

  for (const char* bad : {"--budget inf", "--budget 1e30"}) {
    EXPECT_EQ(tune(bad).exit_code, 2) << bad;
  }
}

}  // namespace
}  // namespace mrrope
