// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/output_file.h"
#include "eval/run/run_folder.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

// Files of this process may not grow past `bytes`: what a full disk looks like to a process.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    handler_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(Journal, KeepsLines) {
  const TempFolder dir;
  {
    Journal journal(dir / "j");
    journal.append({{"a", 1}});
    journal.append({{"b", 0.1}});
    EXPECT_EQ(journal.lines().size(), 2u);
  }
  EXPECT_EQ(read_file(dir / "j"), "{\"a\":1}\n{\"b\":0.1}\n");
  const Journal again(dir / "j");
  EXPECT_EQ(again.lines().size(), 2u);
  EXPECT_EQ(again.lines()[1].at("b").get<double>(), 0.1);
}

TEST(Journal, TornLastLineIsDropped) {
  const TempFolder dir;
  for (const std::string half : {"{\"b\":", "{\"b\":2}", "{", "garbage\n", "[1]\n"}) {
    write_file(dir / "j", "{\"a\":1}\n" + half);
    Journal journal(dir / "j");
    EXPECT_EQ(journal.lines().size(), 1u) << half;
    EXPECT_EQ(journal.half_line(), half.size());
    EXPECT_EQ(read_file(dir / "j"), "{\"a\":1}\n" + half);  // untouched until something is added
    journal.append({{"c", 3}});
    EXPECT_EQ(read_file(dir / "j"), "{\"a\":1}\n{\"c\":3}\n");
  }
}

TEST(Journal, BrokenLineInTheMiddleIsNotRepaired) {
  const TempFolder dir;
  write_file(dir / "j", "{\"a\":1}\n{\"b\n{\"c\":3}\n");
  EXPECT_ERROR(Journal(dir / "j"), corrupt, "line 2");
}

// Brackets cost one byte each in the file and far more in memory.
TEST(Journal, RefusesDeepAndWideJson) {
  const TempFolder dir;
  const std::string deep = "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  std::string wide = "{\"a\":[";
  for (int i = 0; i < 5'000'000; ++i) wide += "0,";
  wide += "0]}";
  for (const std::string& bomb : {deep, wide}) {
    write_file(dir / "j", bomb + "\n{\"b\":1}\n");
    EXPECT_ERROR(Journal(dir / "j"), corrupt, "line 1");
    write_file(dir / "a/run.json", bomb);
    EXPECT_ERROR(read_run(dir / "a"), corrupt, "run.json");
  }
}

// Each file of a run as a pipe, as a link to a device, and larger than any of ours: refused at
// once.
TEST(RunFolder, FilesThatCannotBeReadWholeAreRefusedUnread) {
  const TempFolder dir;
  const RunInfo info{"mrrope eval ppl m", "sha256:1", 1};
  const auto resume = [&] {
    RunFolder folder(dir / "a", info);
    folder.begin({{"task", "ppl"}}, 1);
    folder.append_part({0}, {{"x", 1}}, {});
  };
  resume();
  const auto rss = peak_memory();
  for (const std::string name : {"run.json", "journal.jsonl", "parts.jsonl"}) {
    const auto file = dir / ("a/" + name);
    const auto refused = [&](ErrorKind kind, const char* why) {
      expect_error(kind, why, resume);
      if (name != "parts.jsonl") expect_error(kind, why, [&] { read_run(dir / "a"); });
    };
    std::filesystem::rename(file, dir / "kept");
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    refused(ErrorKind::failed, "not a regular file");
    std::filesystem::remove(file);
    std::filesystem::create_symlink("/dev/zero", file);
    refused(ErrorKind::failed, name.c_str());
    std::filesystem::remove(file);
    dir.write_sparse("a/" + name, "{", std::uint64_t{6} << 30);
    refused(ErrorKind::corrupt, "6442450944 bytes");
    std::filesystem::remove(file);
    std::filesystem::rename(dir / "kept", file);
    resume();
  }
  EXPECT_LT(peak_memory() - rss, std::uint64_t{1} << 28);
}

TEST(Journal, TwoRunsInOneFolderAreRefused) {
  const TempFolder dir;
  const Journal first(dir / "j");
  EXPECT_ERROR(Journal(dir / "j"), failed, "another run");
}

TEST(Journal, FullDiskLosesNothing) {
  const TempFolder dir;
  Journal journal(dir / "j");
  journal.append({{"a", std::string(50, 'x')}});
  const std::string before = read_file(dir / "j");
  {
    const FullDisk full(100);
    EXPECT_ERROR(journal.append({{"b", std::string(200, 'x')}}), failed, "cannot write");
  }
  EXPECT_EQ(read_file(dir / "j"), before);
  journal.append({{"c", 1}});
  EXPECT_EQ(read_file(dir / "j"), before + "{\"c\":1}\n");
}

TEST(Journal, DoesNotFollowPlantedLinks) {
  const TempFolder dir;
  write_file(dir / "victim", "one line that is not a journal");
  std::filesystem::create_symlink(dir / "victim", dir / "journal.jsonl");
  EXPECT_ERROR(Journal(dir / "journal.jsonl"), failed, "cannot open");
  EXPECT_EQ(read_file(dir / "victim"), "one line that is not a journal");
}

TEST(WriteAtomically, ReplacesTheFileOrKeepsTheOldOne) {
  const TempFolder dir;
  write_atomically(dir / "f", "one");
  {
    const FullDisk full(10);
    EXPECT_ERROR(write_atomically(dir / "f", std::string(100, 'x')), failed, "cannot write");
  }
  EXPECT_EQ(read_file(dir / "f"), "one");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()),
                          std::filesystem::directory_iterator()),
            1);
  write_atomically(dir / "f", "two");
  EXPECT_EQ(read_file(dir / "f"), "two");
  EXPECT_ERROR(write_atomically(dir / "no/such/f", "x"), failed, "cannot");
}

TEST(RunFolder, ResumesTheSameRun) {
  const TempFolder dir;
  const RunInfo info{"mrrope eval ppl m", "sha256:1", 1};
  const ordered_json identity = {{"task", "ppl"}, {"lengths", {1, 2}}};
  {
    RunFolder folder(dir / "out/a", info);
    folder.begin(identity);
    EXPECT_TRUE(folder.notes().empty());
    folder.append({{"unit", 1}});
    folder.finish("{}\n", {2.0, 100});
  }
  RunFolder folder(dir / "out/a", {"other words, same run", "sha256:1", 1});
  folder.begin(identity);
  ASSERT_EQ(folder.units().size(), 1u);
  EXPECT_EQ(folder.notes().size(), 1u);
  EXPECT_EQ(folder.run().at("measured").at("tokens_per_second"), 50);
  EXPECT_GT(folder.run().at("measured").at("peak_memory_bytes"), 1000000);
  const RecordedRun recorded = read_run(dir / "out/a");
  EXPECT_EQ(recorded.units.size(), 1u);
  EXPECT_EQ(recorded.run.at("model_digest"), "sha256:1");
}

TEST(RunFolder, AddsUpTheCostOfEveryCall) {
  const TempFolder dir;
  const RunInfo info{"c", "sha256:1", 1};
  std::string started;
  {
    RunFolder killed(dir / "a", info);
    killed.begin({{"task", "ppl"}});
    killed.append({{"unit", 1}}, {1.0, 100});
    killed.append({{"unit", 2}}, {2.0, 300});
    started = killed.run().at("measured").at("started");
  }
  {
    RunFolder last(dir / "a", info);
    last.begin({{"task", "ppl"}});
    last.append({{"unit", 3}}, {2.0, 100});
    last.finish("{}\n", {2.0, 100});
  }
  {
    RunFolder again(dir / "a", info);  // everything is there
    again.begin({{"task", "ppl"}});
    again.finish("{}\n", {0.5, 0});
  }
  ordered_json run = read_run(dir / "a").run;
  EXPECT_EQ(run.at("measured").at("tokens"), 400);
  EXPECT_EQ(run.at("measured").at("seconds"), 4);
  EXPECT_EQ(run.at("measured").at("tokens_per_second"), 100);
  EXPECT_EQ(run.at("measured").at("started"), started);
  run["measured"]["tokens"] = "many";
  write_file(dir / "a/run.json", run.dump());
  RunFolder folder(dir / "a", info);
  EXPECT_ERROR(folder.begin({{"task", "ppl"}}), corrupt, "run.json");
}

TEST(RunFolder, RefusesAnotherRunAndSaysWhy) {
  const TempFolder dir;
  {
    RunFolder folder(dir / "a", {"c", "sha256:1", 1});
    folder.begin({{"task", "ppl"}, {"methods", {{{"plan", "x"}}, {{"plan", "y"}}}}});
    folder.append({{"unit", 1}});
  }
  const std::string journal = read_file(dir / "a/journal.jsonl");
  const auto begin = [&](const RunInfo& info, const ordered_json& identity) {
    RunFolder folder(dir / "a", info);
    folder.begin(identity);
  };
  EXPECT_ERROR(begin({"c", "sha256:2", 1},
                     {{"task", "ppl"}, {"methods", {{{"plan", "x"}}, {{"plan", "y"}}}}}),
               usage, "model_digest is \"sha256:1\" there and \"sha256:2\" now");
  EXPECT_ERROR(begin({"c", "sha256:1", 1},
                     {{"task", "ppl"}, {"methods", {{{"plan", "x"}}, {{"plan", "z"}}}}}),
               usage, "methods/1/plan is \"y\" there and \"z\" now");
  EXPECT_ERROR(begin({"c", "sha256:1", 1}, {{"extra", 1}}), usage, "extra is not in it");
  EXPECT_EQ(read_file(dir / "a/journal.jsonl"), journal);
}

// Other lengths need another context, and with it the engine may choose another batch size.
TEST(RunFolder, NamesRequestedSettingsBeforeDerivedOnes) {
  const TempFolder dir;
  const auto begin = [&](std::int64_t length, const char* engine) {
    RunFolder folder(dir / "a", {"c", "sha256:1", 1});
    folder.begin({{"task", "ppl"}, {"engine", engine}, {"settings", {{"lengths", {length}}}}});
  };
  begin(1024, "ubatch 512");
  EXPECT_ERROR(begin(2048, "ubatch 256"), usage, "settings/lengths/0 is 1024 there and 2048 now");
  EXPECT_ERROR(begin(1024, "ubatch 256"), usage,
               "engine is \"ubatch 512\" there and \"ubatch 256\" now");
}

TEST(RunFolder, DoesNotWriteRunJsonForEveryUnit) {
  const TempFolder dir;
  const RunInfo info{"c", "sha256:1", 1};
  {
    RunFolder folder(dir / "a", info);
    folder.begin({{"task", "ppl"}});
    const std::string before = read_file(dir / "a/run.json");
    folder.append({{"unit", 1}}, {1.0, 100});
    EXPECT_EQ(read_file(dir / "a/run.json"), before);
    EXPECT_EQ(folder.run().at("measured").at("tokens"), 100);
  }
  EXPECT_EQ(read_run(dir / "a").run.at("measured").at("tokens"), 100);
}

// JSON, but of other types than a journal has: never an exception of the JSON library.
TEST(RunFolder, RefusesAJournalWhoseTagIsNotAString) {
  const TempFolder dir;
  {
    RunFolder folder(dir / "a", {"c", "sha256:1", 1});
    folder.begin({{"task", "ppl"}});
  }
  for (const char* tag : {"1", "null", "[]", "{}"}) {
    write_file(dir / "a/journal.jsonl", std::string("{\"journal\":1,\"run\":") + tag + "}\n");
    EXPECT_ERROR(read_run(dir / "a"), corrupt, "different runs");
  }
}

TEST(RunFolder, RefusesAForeignJournal) {
  const TempFolder dir;
  write_file(dir / "a/journal.jsonl", "{\"note\":\"mine\"}\n");
  expect_error(ErrorKind::usage, "journal.jsonl", [&] {
    RunFolder folder(dir / "a", {});
    folder.begin({{"task", "ppl"}});
  });
  EXPECT_EQ(read_file(dir / "a/journal.jsonl"), "{\"note\":\"mine\"}\n");
  write_file(dir / "b/run.json", "half");
  expect_error(ErrorKind::corrupt, "run.json", [&] {
    RunFolder folder(dir / "b", {});
    folder.begin({{"task", "ppl"}});
  });
}

TEST(RunFolder, ReportsUnwritablePlaces) {
  const TempFolder dir;
  write_file(dir / "file", "x");
  EXPECT_ERROR(RunFolder(dir / "file", {}), failed, "file");
  EXPECT_ERROR(RunFolder(dir / "file/below", {}), failed, "below");
  std::filesystem::create_directories(dir / "a/journal.jsonl");
  EXPECT_ERROR(RunFolder(dir / "a", {}), failed, "journal.jsonl");
  EXPECT_ERROR(read_run(dir / "nothing"), failed, "is not a run folder");
}

TEST(RunFolder, StoresACommandThatIsNotUtf8) {
  const TempFolder dir;
  RunFolder folder(dir / "a", {"mrrope --text caf\xe9", "", 1});
  folder.begin({{"task", "ppl"}});
  EXPECT_EQ(read_run(dir / "a").run.at("command"), "mrrope --text caf\xef\xbf\xbd");
}

}  // namespace
}  // namespace mrrope::eval
