// SPDX-License-Identifier: Apache-2.0
// Runs in parts: real processes, two of them killed, merged into the bytes of one run.
#include <signal.h>

#include "support/command.h"

namespace mrrope {
namespace {

class Shards : public testing::TestWithParam<const char*> {
 protected:
  Shards() {
    for (int i = 0; i < 3; ++i) {
      write_file(texts_ / (std::to_string(i) + ".txt"), lemmas(100 * i, 14));
    }
  }

  std::string line(const std::string& out, const std::string& more = {}) const {
    const std::string task = GetParam();
    std::string flags =
        " --form planted --lengths 80,128 --depths 0,50 -n 8 --samples 3 --haystack " +
        texts_.path().string();
    if (task == "ppl") flags = " --lengths 32,96 --kl-positions 8 --text " + texts_.path().string();
    if (task == "infinitebench") flags = " --lengths 160 --tasks passkey --samples 31";
    return "eval " + task + " " + MRROPE_TINY_MODEL + flags + " --methods none,pro" +
           (task == "infinitebench" ? "" : ",elastic:pro") + " --train-ctx 48 --ctx " +
           (task == "infinitebench" ? "160" : "128") + " -t 1 -o " + folder_.file(out) + more;
  }
  std::string shard(int i) const {
    return line("part" + std::to_string(i), " --shard " + std::to_string(i) + "/4");
  }
  std::string file(const std::string& name) const { return read_file(folder_ / name); }
  std::size_t lines(const std::string& out) const {
    return lines_in(folder_ / (out + "/journal.jsonl"));
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

  TempFolder folder_{test::fast_place()};
  TempFolder texts_;
};

TEST_P(Shards, FourShardsWithTwoKilledMergeIntoOneRun) {
  expect_run(line("whole"));
  for (const int i : {2, 3}) {
    RunningCommand command(shard(i));
    while (lines("part" + std::to_string(i)) < 2 && command.running()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
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

INSTANTIATE_TEST_SUITE_P(Tasks, Shards, testing::Values("ppl", "needle", "infinitebench"),
                         [](const auto& task) { return std::string(task.param); });

}  // namespace
}  // namespace mrrope
