// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace mrrope {
namespace {

using test::read_file;
using test::TempFolder;
namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(OutputFile, IsThereInFullOrNotAtAll) {
  const TempFolder folder;
  {
    OutputFile file(folder / "a", 10, false);
    file.write("0123");
    EXPECT_FALSE(fs::exists(folder / "a"));
    file.zeros(3);
    EXPECT_EQ(file.position(), 7u);
    file.publish();
  }
  EXPECT_EQ(read_file(folder / "a"), std::string("0123\0\0\0", 7));
  {
    OutputFile file(folder / "b", 10, false);
    file.write("half");
  }
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(OutputFile, CopiesRangesSmallAndLarge) {
  const TempFolder folder;
  std::string content;
  for (int i = 0; i < 12'000'000; ++i) content += static_cast<char>(i * 7 + i / 251);
  const Source source = Source::open(folder.write("in", content));
  std::uint64_t seen = 0;
  OutputFile file(folder / "out", content.size(), false);
  file.on_bytes = [&](std::uint64_t bytes) { seen += bytes; };
  file.write("x");
  file.copy(source, 5, 10'000'000);  // by the system where it can
  file.copy(source, 17, 100);
  file.write("y");
  file.publish();
  EXPECT_TRUE(read_file(folder / "out") ==
              "x" + content.substr(5, 10'000'000) + content.substr(17, 100) + "y");
  EXPECT_EQ(seen, 10'000'102u);
  OutputFile past(folder / "past", 1, false);
  EXPECT_ERROR(past.copy(source, 11'999'999, 2), corrupt, "outside");
}

TEST(OutputFile, RefusesToReplaceUnlessTold) {
  const TempFolder folder;
  folder.write("a", "old");
  EXPECT_ERROR(OutputFile(folder / "a", 1, false), usage, "exists");
  OutputFile file(folder / "a", 1, true);
  file.write("new");
  EXPECT_EQ(read_file(folder / "a"), "old");
  file.publish();
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_ERROR(OutputFile(folder / "none" / "a", 1, false), failed, "none");
  fs::create_directory(folder / "d");
  EXPECT_ERROR(OutputFile(folder / "d", 1, true), failed, "directory");
}

// A name that appeared while the file was written is not replaced either.
TEST(OutputFile, LooksAgainBeforeItTakesItsName) {
  const TempFolder folder;
  OutputFile file(folder / "a", 1, false);
  file.write("mine");
  folder.write("a", "theirs");
  EXPECT_ERROR(file.publish(), usage, "exists");
  EXPECT_EQ(read_file(folder / "a"), "theirs");
}

TEST(OutputFile, OneWriterAtATime) {
  const TempFolder folder;
  const OutputFile first(folder / "a", 1, false);
  EXPECT_ERROR(OutputFile(folder / "a", 1, false), failed, "another process");
}

TEST(OutputFile, RefusesWhatCannotFitBeforeItWrites) {
  const TempFolder folder;
  EXPECT_ERROR(OutputFile(folder / "a", std::uint64_t{1} << 60, false), failed, "free");
  EXPECT_TRUE(names_in(folder.path()).empty());
}

// The limit on file sizes stands in for a full disk: a write fails half way.
TEST(OutputFile, LeavesNothingBehindOnAFullDisk) {
  const TempFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{3 << 20, 3 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      OutputFile file(folder / "a", 1, false);
      file.zeros(10 << 20);
      file.publish();
    } catch (const Error& error) {
      _exit(error.kind() == ErrorKind::failed && !error.hint().empty() ? 42 : 1);
    }
    _exit(2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(OutputFile, SurvivesAKill) {
  const TempFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    OutputFile file(folder / "a", 1, false);
    file.zeros(5 << 20);
    [[maybe_unused]] const ssize_t told = write(ready[1], "x", 1);
    for (;;) pause();
  }
  char c = 0;
  ASSERT_EQ(read(ready[0], &c, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(fs::exists(folder / "a"));
  // What is left has another name, and the next one takes it over.
  OutputFile file(folder / "a", 1, false);
  file.write("whole");
  file.publish();
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
  EXPECT_EQ(read_file(folder / "a"), "whole");
}

}  // namespace
}  // namespace mrrope
