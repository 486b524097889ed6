// SPDX-License-Identifier: Apache-2.0
// The command against a server on loopback that behaves well, badly, or not at all: the results are
// the same, and what happened is reported.
#include <signal.h>

#include "support/command.h"
#include "support/fake_server.h"

namespace mrrope {
namespace {

class Endpoint : public testing::Test {
 protected:
  std::string ruler(const FakeServer& server, const std::string& out,
                    const std::string& more = {}) const {
    return "eval ruler --endpoint " + server.url() +
           " --lengths 2k,3k --tasks niah_single_1,niah_multikey_1 --samples 6 -o " +
           folder_.file(out) + (more.empty() ? " --parallel 8 --timeout 1" : more);
  }
  std::string needle(const FakeServer& server, const std::string& out,
                     const std::string& more = {}) const {
    return "eval needle --endpoint " + server.url() +
           " --lengths 1k,2k --depths 0,50,100 --samples 4 --parallel 8 --timeout 1 -o " +
           folder_.file(out) + (more.empty() ? " --form planted" : more);
  }
  std::string file(const std::string& name) const { return read_file(folder_ / name); }
  std::string results(const std::string& out) const { return file(out + "/results.json"); }
  std::size_t lines(const std::string& out) const {
    return lines_in(folder_ / (out + "/journal.jsonl"));
  }

  TempFolder folder_{test::fast_place()};
};

TEST_F(Endpoint, FaultsAreReportedAndDoNotChangeResults) {
  const std::string key = "sk-very-secret-4711";
  FakeServer good;
  FakeServer bad({.faulty = true, .key = key});
  for (const bool haystack : {false, true}) {
    const auto line = [&](const FakeServer& server, const std::string& out) {
      return haystack ? needle(server, out) : ruler(server, out);
    };
    const std::string clean = haystack ? "needle" : "ruler";
    const CommandResult undisturbed = expect_run(line(good, clean));
    const CommandResult r =
        expect_run(line(bad, clean + "-bad"), 0, {}, "export MRROPE_API_KEY=" + key + ";");
    EXPECT_EQ(results(clean + "-bad"), results(clean));
    EXPECT_EQ(r.out, undisturbed.out);
    const std::string journal = file(clean + "-bad/journal.jsonl");
    EXPECT_TRUE(contains(journal, "\"troubles\":{")) << journal;
    for (const std::string& text :
         {r.out, r.err, journal, file(clean + "-bad/run.json"), file(clean + "-bad/report.html")}) {
      EXPECT_FALSE(contains(text, key));
    }
    EXPECT_TRUE(contains(r.err, "problems with the server: ")) << r.err;
    for (const char* kind : {"status 429 x", "status 500 x", "cut x", "garbage x"}) {
      EXPECT_TRUE(contains(r.err, kind)) << kind << r.err;
    }
  }
  EXPECT_EQ(bad.faults().size(), 7u);  // every kind of fault has happened
  const json rows = json::parse(results("ruler"))["results"];
  EXPECT_EQ(rows[0]["method"], "served");
  EXPECT_EQ(rows[0]["scale"], nullptr);
  EXPECT_GT(rows[0]["value"], 0);  // the fake finds the only number
}

TEST_F(Endpoint, AfterAKillOrInterruptAsksOnlyForWhatIsMissing) {
  FakeServer server({.seconds = 0.02, .gate = 8});
  expect_run(ruler(server, "whole", " --parallel 8 --timeout 30"));
  EXPECT_EQ(server.most_at_once(), 8);
  const int all = server.answered();
  EXPECT_EQ(all, 24);
  for (const int signal : {SIGKILL, SIGINT}) {
    const std::string out = "cut" + std::to_string(signal);
    RunningCommand command(ruler(server, out, " --parallel 2"));
    while (lines(out) < 9 && command.running()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    command.send(signal);
    const CommandResult cut = command.wait();
    EXPECT_EQ(cut.exit_code, signal == SIGINT ? 130 : 128 + SIGKILL) << cut.err;
    server.wait_until_idle();  // it also answers clients that have disconnected
    const int before = server.answered();
    const auto kept = int(lines(out)) - 1;
    EXPECT_GE(kept, 8);
    EXPECT_LT(kept, all);
    expect_run(ruler(server, out));
    EXPECT_EQ(server.answered() - before, all - kept);
    EXPECT_EQ(results(out), results("whole"));
  }
}

TEST_F(Endpoint, ShardsAreMerged) {
  FakeServer server;
  expect_run(needle(server, "whole"));
  for (const char* i : {"1", "2", "3"}) {
    expect_run(needle(server, std::string("part") + i,
                      std::string(" --form planted --shard ") + i + "/3"));
  }
  expect_run("report " + folder_.file("part1") + " " + folder_.file("part2") + " " +
             folder_.file("part3") + " -o " + folder_.file("merged"));
  EXPECT_EQ(results("merged"), results("whole"));
}

TEST_F(Endpoint, NeedlesOfOneTextAreAskedForOneByOne) {
  FakeServer server;
  const std::string line = "eval needle --endpoint " + server.url() +
                           " --lengths 1k,2k --questions 3 --samples 4 --parallel 8 --form planted";
  expect_run(line + " -o " + folder_.file("several"), 0, {"Questions about each text: 3."});
  EXPECT_EQ(server.answered(), 2 * 3 * 4);
  for (const json& row : json::parse(results("several"))["results"]) EXPECT_EQ(row["n"], 4) << row;
  expect_run(line + " -o " + folder_.file("several"));
  EXPECT_EQ(server.answered(), 2 * 3 * 4);  // nothing is asked again
}

TEST_F(Endpoint, UnansweredPromptsAreNotScoredAndAreSentAgain) {
  FakeServer server;
  for (const bool haystack : {false, true}) {
    const std::string name = haystack ? "needle" : "ruler";
    const auto line = [&](const std::string& out) {
      return haystack ? needle(server, out) : ruler(server, out);
    };
    server.options.refuses_one = false;
    expect_run(line(name));
    server.options.refuses_one = true;
    expect_run(
        line(name + "-some"), 1,
        {"prompts got no answer and are excluded from the results", "this prompt is not liked"});
    const json some = json::parse(results(name + "-some"));
    EXPECT_GT(some["failed"], 0);
    const auto answers = [](const json& found) {
      int n = 0;
      for (const json& row : found["results"]) n += row["n"].get<int>();
      return n;
    };
    EXPECT_LT(answers(some), answers(json::parse(results(name))));
    server.options.refuses_one = false;
    expect_run(line(name + "-some"));
    EXPECT_EQ(results(name + "-some"), results(name));
  }
}

TEST_F(Endpoint, WrongUsageIsReportedAndChatsUseTheServersTemplate) {
  FakeServer server({.lies = true});
  expect_run(ruler(server, "lies"), 0, {"usage x24 (usage: its token counts differ"});
  const json sent = json::parse(server.last_body());
  EXPECT_EQ(sent["temperature"], 0);
  EXPECT_EQ(sent["prompt"][0], 1);  // the one BOS
  EXPECT_NE(sent["prompt"][1], 1);
  EXPECT_EQ(sent["model"], "fake");
  server.options.lies = false;
  const CommandResult chat = expect_run(ruler(server, "chat", " --api chat"));
  EXPECT_FALSE(contains(chat.err, "usage")) << chat.err;
  const json said = json::parse(server.last_body());
  EXPECT_EQ(said["messages"][0]["role"], "user");
  expect_run(needle(server, "chat-needle", " --form chat --api chat"));
}

TEST_F(Endpoint, RefusesWhatItCannotDoByName) {
  FakeServer server({.models = 2, .context = 1500, .key = "k-4712"});
  const std::string with_key = "export MRROPE_API_KEY=k-4712;";
  const auto with_url = [](const std::string& url, const std::string& more = {}) {
    return "eval ruler --endpoint " + url + " --lengths 1k --tasks vt --samples 1" + more;
  };
  const std::string url = server.url();
  expect_run(with_url(url), 1, {"answers with status 401: wrong key: Bearer ..."},
             "export MRROPE_API_KEY=k-4713;");
  expect_run(with_url(url), 2, {"has 2 models"}, with_key);
  expect_run(with_url(url, " nobody"), 2, {"has no model \"nobody\""}, with_key);
  expect_run(with_url(url, " fake --ctx 2k --lengths 2k"), 2, {"accepts 1500 tokens per request"},
             with_key);
  expect_run(with_url(url, " fake --methods pro"), 2, {"sets the scaling of its model"}, with_key);
  expect_run(with_url(url, " fake --parallel 0"), 2, {"--parallel 0"}, with_key);
  expect_run(with_url(url, " fake -t 4"), 2, {"--threads"}, with_key);
  // Without a tokenizer a vocabulary file is enough.
  FakeServer bare({.tokenizer = false});
  expect_run(with_url(bare.url()), 2, {"--vocab FILE.gguf"});
  expect_run(with_url(bare.url(), std::string(" --vocab ") + MRROPE_TINY_MODEL));
}

}  // namespace
}  // namespace mrrope
