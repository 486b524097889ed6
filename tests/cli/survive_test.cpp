// SPDX-License-Identifier: Apache-2.0
// Runs of the real command that are killed, interrupted, run out of disk space or given another
// model: the same command again must produce the bytes of an undisturbed run. So do runs in parts,
// two of them killed, once they are joined.
#include <signal.h>

#include "support/command.h"

namespace mrrope {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

class Survive : public testing::TestWithParam<const char*> {
 protected:
  Survive() {
    for (int i = 0; i < 3; ++i) {
      write_file(texts_ / (std::to_string(i) + ".txt"), lemmas(100 * i, 14));
    }
  }

  // Nine units that take a moment each; a window of 48 tokens, so that the ladder has rungs. One
  // method less for the benchmark.
  std::string line(const std::string& out, const std::string& model = MRROPE_TINY_MODEL,
                   const std::string& more = {}) const {
    const std::string task = GetParam();
    std::string flags = " --ctx 128 --methods none,pro,elastic:pro";
    if (task == "infinitebench") {
      flags = " --ctx 160 --methods none,pro --lengths 160 --tasks passkey --samples 31";
    } else {
      flags += task == "ppl" ? " --lengths 32,96 --kl-positions 8"
                             : " --form planted --lengths 80,128 --depths 50 -n 8 --samples 3";
      flags += " --text " + texts_.path().string();
    }
    return "eval " + task + " " + model + flags + " --train-ctx 48 -t 1 -o " + folder_.file(out) +
           more;
  }

  std::string file(const std::string& name) const { return read_file(folder_ / name); }
  std::string results(const std::string& out) const { return file(out + "/results.json"); }
  std::string journal(const std::string& out) const { return file(out + "/journal.jsonl"); }
  json measured(const std::string& out) const {
    return json::parse(file(out + "/run.json"))["measured"];
  }
  std::size_t lines(const std::string& out) const {
    return lines_in(folder_ / (out + "/journal.jsonl"));
  }

  // Waits until the journal has this many lines, time is up, or the command has ended.
  void wait_for_lines(RunningCommand& command, const std::string& out, std::size_t count,
                      Seconds most = Seconds(1e6)) const {
    const auto start = Clock::now();
    while (lines(out) < count && Clock::now() - start < most && command.running()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  void expect_as_undisturbed(const std::string& out) const {
    const CommandResult last = expect_run(line(out));
    EXPECT_EQ(results(out), results("whole"));
    EXPECT_EQ(journal(out), journal("whole"));
  }

  // The tiny model with its last weights turned into NaN.
  std::string broken_model() const {
    std::string bytes = read_file(MRROPE_TINY_MODEL);
    std::fill(bytes.end() - 64, bytes.end(), '\xff');
    write_file(folder_ / "broken.gguf", bytes);
    return folder_.file("broken.gguf");
  }

  TempFolder folder_{test::fast_place()};
  TempFolder texts_;
};

// Every chain is one run, killed three times at moments that are spread over it: after a number of
// finished units, and then a random part of the next ones.
TEST_P(Survive, KilledAtAnyMoment) {
  const char* set = std::getenv("MRROPE_SURVIVE_CHAINS");
  const int chains = set != nullptr ? std::atoi(set) : 4;
  constexpr int kKills = 3;
  const auto started = Clock::now();
  expect_run(line("whole"));
  const double whole_seconds = Seconds(Clock::now() - started).count();
  const std::size_t all = lines("whole");
  ASSERT_EQ(all, 10u);  // one line for the run, 3 x 3 units

  std::mt19937 random(1);
  const auto uniform = [&](double end) { return double(random()) / 4294967296.0 * end; };
  int killed = 0;
  std::string moments;
  for (int chain = 0; chain < chains; ++chain) {
    const std::string out = "cut" + std::to_string(chain);
    for (int k = 0; k < kKills; ++k) {
      RunningCommand command(line(out));
      const auto target = std::size_t((k + uniform(1)) * double(all - 1) / kKills);
      wait_for_lines(command, out, target);
      // Kill at the next line at the latest, so that the run has not ended even if the machine
      // became faster. The time before the first line includes the start of the process.
      const double part = whole_seconds / (target == 0 ? 4 : double(all));
      wait_for_lines(command, out, std::max(lines(out), target) + 1, Seconds(uniform(part)));
      const bool alive = command.running();
      command.send(SIGKILL);
      EXPECT_EQ(command.wait().exit_code, alive ? 128 + SIGKILL : 0);
      killed += alive ? 1 : 0;
      moments += std::to_string(lines(out)) + " ";
    }
    expect_as_undisturbed(out);
    std::filesystem::remove_all(folder_ / out);
  }
  std::cout << killed << " kills, journal lines then: " << moments << "\n";
  EXPECT_GE(killed, chains * kKills * 3 / 4) << moments;
}

TEST_P(Survive, CtrlCOrSigtermSavesAndSaysHowToResume) {
  expect_run(line("whole"));
  RunningCommand command(line("cut"));
  wait_for_lines(command, "cut", 4);
  for (int i = 0; i < 2; ++i) {  // to its process group, and once more by ./run
    command.send(std::string(GetParam()) == "needle" ? SIGTERM : SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const CommandResult r = command.wait();
  ASSERT_EQ(r.exit_code, 130) << r.err;
  EXPECT_TRUE(contains(r.err, " of 9 units")) << r.err;
  EXPECT_TRUE(contains(r.err, ", which are kept in ")) << r.err;
  EXPECT_GE(lines("cut"), 4u);
  EXPECT_LT(lines("cut"), 10u);
  EXPECT_TRUE(results("cut").empty());
  // The command that it names, word for word.
  const std::string start = "resume with: mrrope ";
  const std::size_t at = r.err.find(start);
  ASSERT_NE(at, std::string::npos) << r.err;
  const std::size_t begin = at + start.size();
  const std::string named = r.err.substr(begin, r.err.find('\n', begin) - begin);
  EXPECT_EQ(named, line("cut"));
  expect_run(named, 0, {"resuming: "});
  EXPECT_EQ(results("cut"), results("whole"));
}

// A run is killed, and before it can resume the disk is full, the model is gone, another one has
// taken its place, and the journal ends in half a line. Nothing is lost.
TEST_P(Survive, SurvivesAKillFollowedByOtherFailures) {
  expect_run(line("whole"));
  const std::string model = folder_.file("model.gguf");
  std::filesystem::copy_file(MRROPE_TINY_MODEL, model);
  {
    RunningCommand command(line("cut", model));
    wait_for_lines(command, "cut", 5);
    command.send(SIGKILL);
    command.wait();
  }
  const std::string before = journal("cut");
  ASSERT_LT(lines("cut"), 10u);
  for (const char* out : {"cut", "new"}) {
    // No file may grow past 1024 bytes.
    expect_run(line(out, model), 1, {"cannot write ", "free some space"},
               "trap '' XFSZ; ulimit -f 2;");
  }
  std::filesystem::remove(model);
  expect_run(line("cut", model), 1, {model});
  expect_run(line("cut", broken_model()), 2, {"holds another run: model_digest is "});
  EXPECT_EQ(journal("cut"), before);

  write_file(folder_ / "cut/journal.jsonl", before + "{\"task\":");
  const CommandResult last = run_command(line("cut"));  // the same model, wherever it is
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_TRUE(contains(last.err, "the journal ended in an incomplete line (8 bytes)")) << last.err;
  EXPECT_EQ(results("cut"), results("whole"));
  EXPECT_EQ(journal("cut"), journal("whole"));
  // run.json counts all calls; a killed one loses its cost since the last time it was saved.
  const double all = measured("whole")["tokens"];
  EXPECT_LE(measured("cut")["tokens"].get<double>(), all);
  EXPECT_GT(measured("cut")["tokens"].get<double>(), 0);
  EXPECT_GT(measured("cut")["peak_memory_bytes"], 1000000);
}

TEST_P(Survive, RefusesASecondRunAndSurvivesALostModel) {
  expect_run(line("whole"));
  const std::string model = folder_.file("model.gguf");
  std::filesystem::copy_file(MRROPE_TINY_MODEL, model);
  RunningCommand first(line("cut", model));
  wait_for_lines(first, "cut", 2);
  std::filesystem::remove(model);
  first.send(SIGSTOP);  // it must not end before the second one starts
  const CommandResult second = run_command(line("cut"));
  first.send(SIGCONT);
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_TRUE(contains(second.err, "another run is writing to ")) << second.err;
  const CommandResult r = first.wait();
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(results("cut"), results("whole"));
}

TEST_P(Survive, NanEndsTheRunAndIsNamed) {
  expect_run(line("cut", broken_model()), 1, {"NaN", "(method none, "});
  EXPECT_EQ(lines("cut"), 1u);
  EXPECT_TRUE(results("cut").empty());
}

TEST_P(Survive, EmptyTextsAreRefused) {
  for (int i = 0; i < 3; ++i) write_file(texts_ / (std::to_string(i) + ".txt"), "");
  expect_run(line("cut"), 2, {"empty"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cut"));
}

// One unit of 22 needles, stopped ten times inside it: every answer is kept.
TEST(SurviveNeedles, StoppedInsideAUnit) {
  const TempFolder folder(test::fast_place());
  write_file(folder / "text.txt", lemmas(0, 14));
  const auto line = [&](const std::string& out) {
    return std::string("eval needle ") + MRROPE_TINY_MODEL +
           " --form planted --lengths 80,128 -n 8 --methods pro --train-ctx 48 -t 1 --haystack " +
           folder.file("text.txt") + " -o " + folder.file(out);
  };
  expect_run(line("whole"));
  EXPECT_FALSE(std::filesystem::exists(folder / "whole/parts.jsonl"));
  const auto parts = [&] {
    return std::ptrdiff_t(lines_in(folder / "cut/parts.jsonl")) - 1;  // the first names the unit
  };
  for (int k = 0; k < 10; ++k) {
    const auto kept = std::max<std::ptrdiff_t>(0, parts());
    RunningCommand command(line("cut"));
    while (parts() < kept + 1 + k % 2 && command.running()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(command.running());
    command.send(k % 3 == 0 ? SIGINT : SIGKILL);
    const CommandResult r = command.wait();
    ASSERT_GT(parts(), kept) << r.err;
    if (k % 3 != 0) continue;
    EXPECT_EQ(r.exit_code, 130);
    EXPECT_TRUE(contains(r.err, "interrupted after 0 of 1 units and " + std::to_string(parts()) +
                                    " parts of the next, which are kept in "))
        << r.err;
  }
  const auto kept = parts();
  ASSERT_LT(kept, 22);
  expect_run(line("cut"), 0, {"resuming: " + std::to_string(kept) + " parts of a unit"});
  for (const char* file : {"results.json", "journal.jsonl"}) {
    EXPECT_EQ(read_file(folder / "cut" / file), read_file(folder / "whole" / file));
  }
}

class Shards : public Survive {
 protected:
  std::string shard(int i) const {
    return line("part" + std::to_string(i), MRROPE_TINY_MODEL,
                " --shard " + std::to_string(i) + "/4");
  }
  std::string parts(std::initializer_list<int> which) const {
    std::string list;
    for (const int i : which) list += " " + folder_.file("part" + std::to_string(i));
    return list;
  }
  CommandResult merge(std::initializer_list<int> which, const std::string& out, int exit_code = 0,
                      std::initializer_list<std::string> words = {}) const {
    return expect_run("report" + parts(which) + " -o " + folder_.file(out), exit_code, words);
  }
};

TEST_P(Shards, FourShardsWithTwoKilledMergeIntoOneRun) {
  expect_run(line("whole"));
  for (const int i : {2, 3}) {
    RunningCommand command(shard(i));
    wait_for_lines(command, "part" + std::to_string(i), 2);
    command.send(SIGKILL);
    EXPECT_EQ(command.wait().exit_code, 128 + SIGKILL);
  }
  expect_run(shard(1));
  merge({1, 2, 3}, "early", 2, {"shard 2/4 in ", "resume with: mrrope eval"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "early"));
  for (const int i : {2, 3, 4}) {
    expect_run(shard(i));
    EXPECT_FALSE(std::filesystem::exists(folder_ / ("part" + std::to_string(i) + "/results.json")));
  }
  const CommandResult r = merge({4, 1, 3, 2}, "merged");
  EXPECT_EQ(file("merged/results.json"), file("whole/results.json"));
  EXPECT_EQ(file("merged/journal.jsonl"), file("whole/journal.jsonl"));
  json merged = json::parse(file("merged/run.json"));
  json whole = json::parse(file("whole/run.json"));
  EXPECT_GT(merged["measured"]["tokens"], 0);
  for (const char* key : {"command", "measured"}) merged.erase(key), whole.erase(key);
  EXPECT_EQ(merged, whole);
  // The verb that did this before.
  const CommandResult before =
      expect_run("merge" + parts({1, 2, 3, 4}) + " -o " + folder_.file("before"), 0,
                 {"type mrrope report DIR... -o WHOLE"});
  EXPECT_EQ(before.out, r.out);
  EXPECT_EQ(file("before/results.json"), file("whole/results.json"));
  // A page of them says what is missing.
  const CommandResult page =
      expect_run("report" + parts({1, 2, 3, 4}) + " --json -o " + folder_.file("a.html"));
  const CommandResult same =
      run_command("report " + folder_.file("whole") + " --json -o " + folder_.file("b.html"));
  expect_run("report " + folder_.file("whole") + " -o " + folder_.file("whole/run.json"), 2,
             {"is part of the run"});
  json a = json::parse(page.out);
  json b = json::parse(same.out);
  ASSERT_EQ(a["runs"].size(), 1u) << page.out;
  EXPECT_EQ(a["runs"][0]["state"], "finished");
  for (json* rows : {&a["results"], &b["results"]}) {
    for (json& row : *rows) row.erase("run");
  }
  EXPECT_FALSE(a["results"].empty());
  EXPECT_EQ(a["results"], b["results"]);
  const CommandResult lacking =
      expect_run("report" + parts({1, 4}) + " -o " + folder_.file("c.html"));
  EXPECT_TRUE(contains(lacking.out + file("c.html"), "shard 2/4 is missing")) << lacking.out;
}

INSTANTIATE_TEST_SUITE_P(Tasks, Survive, testing::Values("ppl", "needle"),
                         [](const auto& task) { return std::string(task.param); });
INSTANTIATE_TEST_SUITE_P(Tasks, Shards, testing::Values("ppl", "needle", "infinitebench"),
                         [](const auto& task) { return std::string(task.param); });

}  // namespace
}  // namespace mrrope
