// SPDX-License-Identifier: Apache-2.0
// tune with the real command on the real tiny model, treated as one with a window of 128.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "formats/plan_file.h"
#include "mrrope/model.h"
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
  // As a search of the family of static plans, unless told otherwise.
  std::string line(const std::string& arguments, const std::string& ctx = "256",
                   const std::string& model = kModel,
                   const std::string& method = "--method power ") const {
    return "tune " + model + " --train-ctx 128 --ctx " + ctx +
           " -t 1 --form planted --questions 2 --text " + folder_.file("texts") + " " + method +
           "--profile " + folder_.file("profile.json") + " " + arguments;
  }
  CommandResult tune(const std::string& arguments, const std::string& ctx = "256",
                     const std::string& model = kModel) const {
    return run_command(line(arguments, ctx, model));
  }
  // Better on held-out text, or not and nothing written.
  static void expect_done(const CommandResult& r) {
    EXPECT_TRUE(r.exit_code == 0 || r.exit_code == 6) << r.err;
    EXPECT_EQ(contains(r.err, "nothing changes"), r.exit_code == 6) << r.err;
  }
  TempFolder folder_;
};

TEST_F(TuneCommand, DryRunPrintsTheCost) {
  const CommandResult whole = tune("--dry-run");
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  // Eight published plans and the one found, on two documents.
  EXPECT_TRUE(contains(whole.out, "reads 256 tokens about 80 times, the proof 18 times"))
      << whole.out;
  EXPECT_TRUE(contains(whole.out, "time not known yet")) << whole.out;
  const std::string kept = "XDG_CACHE_HOME=" + folder_.file("cache");
  run_command("inspect " + kModel + " --time -t 1", kept);
  EXPECT_TRUE(contains(run_command(line("--dry-run"), kept).out, "18 times: about "));
  EXPECT_EQ(tune("--dry-run --budget 1e9").exit_code, 0);
  EXPECT_EQ(tune("--dry-run --json").exit_code, 2);
}

TEST_F(TuneCommand, FindsAPlanAndReportsTheProof) {
  const std::string out = folder_.file("plan.json");
  const CommandResult r = tune("--budget 7 --json -o " + out);
  expect_done(r);
  const json results = json::parse(r.out);
  EXPECT_LE(results["passes"], 7);
  EXPECT_EQ(results["factors"]["chosen"].size(), 64u);
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
                           "data-name=\"best\"", "data-name=\"chosen\""}) {
    EXPECT_TRUE(contains(page, part)) << part;
  }
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

TEST_F(TuneCommand, SearchesALadder) {
  const CommandResult r = run_command(line("--budget 9", "256", kModel, "--method elastic:power "));
  expect_done(r);
  EXPECT_TRUE(contains(r.out, "elastic:"));
  EXPECT_GT(json::parse(read_file(folder_.file("profile.tune/found.json")))["rungs"].size(), 1u);
}

// Likely plans on the bundled texts. Whether one is better than auto is up to the model.
TEST_F(TuneCommand, WithoutTextsItPlantsQuestionsInTheBundledOnes) {
  const std::string cache = folder_.file("cache");
  const CommandResult r =
      run_command("tune " + kModel + " --train-ctx 128 --ctx 512 -t 1 --form planted --questions 3",
                  "XDG_CACHE_HOME=" + cache);
  expect_done(r);
  EXPECT_TRUE(contains(r.err, "using the bundled ones")) << r.err;
  EXPECT_TRUE(contains(r.err, "tokens about ")) << r.err;
  EXPECT_TRUE(contains(r.out, "auto")) << r.out;
  EXPECT_TRUE(std::filesystem::exists(cache + "/mrrope/profiles"));

  const CommandResult far = run_command("tune " + kModel + " --ctx 256k");
  EXPECT_EQ(far.exit_code, 2);
  EXPECT_TRUE(contains(far.err, "the bundled texts are too short for 262144")) << far.err;
  EXPECT_TRUE(contains(far.err, "--text")) << far.err;
}

// A profile as tune writes it.
class ProfileCommand : public TuneCommand {
 protected:
  void write_profile(const std::string& path, const std::string& method,
                     const std::string& digest = digest_of_model()) const {
    write_file(path, json{{"profile", 1},
                          {"model", digest},
                          {"window", 128},
                          {"ctx", 512},
                          {"method", method},
                          {"measured", json::object()}}
                         .dump());
  }
  static std::string digest_of_model() { return model_digest({kModel}); }
  std::string kept() const {
    const std::uint64_t bytes = read_model(kModel).weight_bytes;
    return folder_.file("cache/mrrope/profiles/" + std::to_string(bytes) + "-x.json");
  }
  CommandResult run(const std::string& verb, const std::string& arguments) const {
    return run_command(verb + " " + kModel + " --train-ctx 128 " + arguments,
                       "XDG_CACHE_HOME=" + folder_.file("cache"));
  }
  const std::string plan_ = "far:pi(near=L/4,sharpen=1)";
};

TEST_F(ProfileCommand, IsUsedWhereAutoWouldBe) {
  write_profile(kept(), plan_);
  const std::string said = "note: auto is " + plan_ + ", by the profile " + kept();
  const std::string ask = "-t 1 -p 'Theorem' -n 2 --ctx ";
  const auto says = [&](const CommandResult& r) { return contains(r.err, said); };
  const CommandResult used = run("generate", ask + "512");
  EXPECT_EQ(used.exit_code, 0) << used.err;
  EXPECT_TRUE(says(used)) << used.err;
  EXPECT_TRUE(contains(used.err, "auto: " + plan_ + ", unchanged up to 128 tokens")) << used.err;
  EXPECT_TRUE(says(run("chat", "--ctx 300 --dry-run")));
  EXPECT_TRUE(says(run("serve", "--ctx 300 --dry-run")));
  EXPECT_FALSE(says(run("generate", ask + "512 --no-profile")));
  EXPECT_FALSE(says(run("generate", ask + "513"))) << "longer than it was measured";
  EXPECT_FALSE(says(run("generate", ask + "128"))) << "inside the window nothing changes";
  EXPECT_FALSE(says(run("generate", ask + "512 --method pro")));
  EXPECT_FALSE(says(run("generate", ask + "512 --method 'auto(headroom=1.25)'")));

  const std::string ppl = "--lengths 256 --text " + folder_.file("texts/0.txt") + " --method ";
  const CommandResult scored = run("eval ppl", ppl + "auto --json");
  EXPECT_TRUE(says(scored)) << scored.err;
  const auto value = [](const CommandResult& r) {
    return json::parse(r.out)["results"][0]["value"].get<double>();
  };
  EXPECT_EQ(value(scored), value(run("eval ppl", ppl + "'" + plan_ + "' --json")));
  EXPECT_NE(value(scored), value(run("eval ppl", ppl + "auto --no-profile --json")));
}

TEST_F(ProfileCommand, ExportsUseAStaticOne) {
  write_profile(kept(), plan_);
  const std::string ask = "--ctx 512 --to commands";
  EXPECT_TRUE(contains(run("export", ask).err, "using pro")) << "no file holds one that grows";
  write_profile(kept(), "pro(headroom=1.25)");
  const CommandResult used = run("export", ask);
  EXPECT_EQ(used.exit_code, 0) << used.err;
  EXPECT_TRUE(contains(used.err, "auto is pro(headroom=1.25), by the profile")) << used.err;
  EXPECT_EQ(used.out, run("export", ask + " --method 'pro(headroom=1.25)'").out);
  EXPECT_FALSE(contains(run("generate", "--ctx 512 --dry-run").err, "by the profile"));
}

TEST_F(ProfileCommand, OneThatIsGivenMustFit) {
  const std::string file = folder_.file("given.json");
  const auto refused = [&](const std::string& arguments, const std::string& why, int code = 2) {
    const CommandResult r = run("generate", "-p x -n 1 --profile " + file + " " + arguments);
    EXPECT_EQ(r.exit_code, code) << r.err;
    EXPECT_TRUE(contains(r.err, why)) << r.err;
    return r;
  };
  const std::string other = "sha256:" + std::string(64, '0');
  write_profile(file, plan_, other);
  EXPECT_TRUE(contains(refused("--ctx 512", other).err, digest_of_model()));
  write_profile(file, plan_);
  EXPECT_EQ(run("generate", "-t 1 -p x -n 1 --ctx 512 --profile " + file).exit_code, 0);
  refused("--ctx 1k", "holds up to 512 tokens");
  refused("--ctx 512 --method pro", "no method is auto");
  refused("--ctx 512 --no-profile", "--no-profile");
  write_profile(file, "pro");
  refused("--ctx 512", "does not grow");
  write_file(file, "{}");
  refused("--ctx 512", "given.json: has no profile", 4);
  // A kept one that is damaged is named, and the rule is used.
  write_file(kept(), "{}");
  const CommandResult r = run("generate", "-t 1 -p x -n 1 --ctx 512");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "a profile is not used: " + kept())) << r.err;
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

  for (const char* bad : {"--budget inf", "--budget 1e30", "--documents 2,1", "--questions 0"}) {
    EXPECT_EQ(tune(bad).exit_code, 2) << bad;
  }
}

}  // namespace
}  // namespace mrrope
