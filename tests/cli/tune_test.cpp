// SPDX-License-Identifier: Apache-2.0
// tune with the real command on the real tiny model, treated as one with a window of 128.
// tests/transcripts/tune.txt has what needs no numbers.
#include <signal.h>

#include "support/command.h"

namespace mrrope {
namespace {

class TuneCommand : public testing::Test {
 protected:
  TuneCommand() {
    for (int i = 0; i < 4; ++i) {
      write_file(folder_.file("texts/" + std::to_string(i) + ".txt"), lemmas(100 * i, 12));
    }
  }
  // A search of the family of static plans.
  std::string line(const std::string& arguments) const {
    return "tune " + kModel + " --train-ctx 128 --ctx 256 --method power -t 1 --form planted " +
           "--questions 2 --text " + folder_.file("texts") + " --profile " +
           folder_.file("profile.json") + " " + arguments;
  }
  CommandResult tune(const std::string& arguments) const { return run_command(line(arguments)); }
  // Better on held-out text, or not and nothing written.
  static void expect_done(const CommandResult& r) {
    EXPECT_TRUE(r.exit_code == 0 || r.exit_code == 6) << r.err;
    EXPECT_EQ(contains(r.err, "nothing changes"), r.exit_code == 6) << r.err;
  }
  TempFolder folder_;
};

TEST_F(TuneCommand, FindsAPlanAndReportsTheProof) {
  const std::string out = folder_.file("plan.json");
  const CommandResult r = tune("--budget 7 --json -o " + out);
  expect_done(r);
  const json results = json::parse(r.out);
  EXPECT_LE(results["passes"], 7);
  EXPECT_LT(results["chosen"], results["trials"].size());
  if (results.contains("proof")) {
    EXPECT_EQ(results["proof"]["published"].size(), 8u);
    EXPECT_EQ(results["proof"]["documents"], 2);
    EXPECT_EQ(results["proof"]["better"], r.exit_code == 0);
    EXPECT_GT(results["proof"]["tuned"]["answer_loss"]["value"], 0);
  }
  EXPECT_EQ(std::filesystem::exists(out), r.exit_code == 0);
  EXPECT_EQ(std::filesystem::exists(folder_.file("profile.json")), r.exit_code == 0);
  // Another search in the same folder may find another plan, and proves that.
  expect_done(tune("--budget 12 --prefer 0 -o " + out));

  // What was found is a plan like any other.
  const std::string found = folder_.file("plan.tune/found.json");
  expect_run("plan --plan " + found);
  expect_run("eval ppl " + kModel + " --train-ctx 128 --plan " + found + " --lengths 256 --text " +
             folder_.file("texts/0.txt"));

  // The report of the folder shows the search and its proof.
  const CommandResult report = expect_run("report " + folder_.file("plan.tune"));
  EXPECT_FALSE(contains(report.err, "skipped")) << report.err;
  EXPECT_TRUE(contains(report.out, "passes among")) << report.out;
  const std::string page = read_file(folder_.file("plan.tune/report.html"));
  for (const char* part : {"Search for a better plan", "data-name=\"front\"", "data-name=\"tried\"",
                           "data-name=\"chosen\""}) {
    EXPECT_TRUE(contains(page, part)) << part;
  }
  const bool proven =
      json::parse(read_file(folder_.file("plan.tune/search/results.json"))).contains("proof");
  EXPECT_EQ(contains(page, "held-out documents"), proven);
}

TEST_F(TuneCommand, SameSeedGivesTheSamePlanEvenAfterAKill) {
  const std::string whole = folder_.file("whole.json");
  const std::string cut = folder_.file("cut.json");
  expect_done(tune("--budget 7 -o " + whole));
  const auto file = [&](const std::string& name) { return read_file(folder_.file(name)); };
  {
    RunningCommand command(line("--budget 7 -o " + cut));
    const auto path = folder_.file("cut.tune/search/journal.jsonl");
    while (lines_in(path) < 3 && command.running()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    command.send(SIGKILL);
    EXPECT_EQ(command.wait().exit_code, 128 + SIGKILL);
  }
  const CommandResult again = tune("--budget 7 -o " + cut);
  expect_done(again);
  EXPECT_TRUE(contains(again.err, "resuming: ")) << again.err;
  EXPECT_EQ(file("cut.tune/found.json"), file("whole.tune/found.json"));
  EXPECT_EQ(file("cut.tune/search/journal.jsonl"), file("whole.tune/search/journal.jsonl"));
  // Other settings in the same folder: what was measured comes from the journal.
  const CommandResult third = tune("--budget 7 -o " + whole + " --start-plan " +
                                   folder_.file("cut.tune/found.json") + " --prefer perplexity");
  expect_done(third);
  EXPECT_TRUE(contains(third.err, "resuming: ")) << third.err;
}

}  // namespace
}  // namespace mrrope
