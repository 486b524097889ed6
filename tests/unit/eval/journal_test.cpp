// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/output_file.h"
#include "base/text.h"
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

// Steps of a transcript in a folder of their own, "STEP WORDS ... | STEP ...": files are written
// and shown, journals and runs are opened, begun, added to and closed.
class Steps {
 public:
  std::string run(const test::Arguments& steps) {
    std::string out;
    for (const std::string& step : steps) {
      const std::string said = test::or_error([&] { return answer(step); });
      if (!said.empty()) out += (out.empty() ? "" : "\n") + said;
    }
    return std::regex_replace(out, std::regex(dir_.path().string() + "/?"), "");
  }

 private:
  std::string answer(const std::string& step) {
    std::istringstream words(step);
    std::string verb, name, rest;
    std::getline(words >> verb >> name >> std::ws, rest);
    if (verb == "file") return write_file(dir_ / name, rest), "";
    if (verb == "folder") return std::filesystem::create_directories(dir_ / name), "";
    if (verb == "link") return std::filesystem::create_symlink(dir_ / rest, dir_ / name), "";
    if (verb == "show") return name + ": " + shown(read_file(dir_ / name));
    if (verb == "journal") {
      journal_ = std::make_unique<Journal>(dir_ / name);
      return cat(journal_->lines().size(), " lines, half a line of ", journal_->half_line());
    }
    if (verb == "second") return Journal(dir_ / name), "opened";
    if (verb == "add") return journal_->append(ordered_json::parse(name + rest)), "";
    if (verb == "close") return journal_.reset(), folder_.reset(), "";
    if (verb == "run") {  // NAME DIGEST COMMAND
      const std::size_t at = std::min(rest.find(' '), rest.size());
      folder_.reset();
      folder_ = std::make_unique<RunFolder>(
          dir_ / name, RunInfo{rest.substr(std::min(at + 1, rest.size())), rest.substr(0, at), 1});
      return "";
    }
    if (verb == "begin") {
      folder_->begin(ordered_json::parse(name + " " + rest));
      return cat("begun with ", folder_->units().size(), " units, ", folder_->notes().size(),
                 " notes");
    }
    if (verb == "unit" || verb == "finish") {  // SECONDS TOKENS
      const RunCost cost{std::stod(name), std::stol(rest)};
      if (verb == "finish") return folder_->finish("{}\n", cost), "";
      return folder_->append({{"unit", folder_->units().size() + 1}}, cost), "";
    }
    if (verb == "recorded") {
      const RecordedRun recorded = read_run(dir_ / name);
      const ordered_json measured = recorded.run.value("measured", ordered_json::object());
      return cat(recorded.units.size(), " units of ", recorded.run["model_digest"].dump(), " by ",
                 recorded.run["command"].dump(), ": ",
                 measured.value("tokens", ordered_json()).dump(), " tokens in ",
                 measured.value("seconds", ordered_json()).dump(), " s, ",
                 measured.value("tokens_per_second", ordered_json()).dump(), " a second");
    }
    if (verb == "change") {  // NAME {"key": value} of measured
      ordered_json run = ordered_json::parse(read_file(dir_ / name));
      run["measured"].update(ordered_json::parse(rest));
      return write_file(dir_ / name, run.dump()), "";
    }
    return "no step " + verb;
  }
  static std::string shown(std::string text) {
    for (std::size_t at; (at = text.find('\n')) != std::string::npos;) text.replace(at, 1, " // ");
    return text;
  }

  TempFolder dir_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<RunFolder> folder_;
};

TEST(Journal, StepsOfJournalsAndRuns) {
  test::expect_functions("journals", {{"steps", [](auto& a) { return Steps().run(a); }}});
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

}  // namespace
}  // namespace mrrope::eval
