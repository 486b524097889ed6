// SPDX-License-Identifier: Apache-2.0
#include "base/files/output_file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

namespace mrrope {
namespace {

namespace fs = std::filesystem;

TEST(OutputFile, IsKeptOnlyIfFinished) {
  const TempFolder folder;
  {
    OutputFile file(folder / "a");
    file.write("0123");
    file.zeros(3);
    EXPECT_EQ(file.position(), 7u);
    file.finish();
  }
  EXPECT_EQ(read_file(folder / "a"), std::string("0123\0\0\0", 7));
  {
    OutputFile file(folder / "b");
    file.write("half");
  }
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(OutputFile, CopiesSmallAndLargeRanges) {
  const TempFolder folder;
  std::string content;
  for (int i = 0; i < 12'000'000; ++i) content += static_cast<char>(i * 7 + i / 251);
  const Source source = Source::open(folder.write("in", content));
  std::uint64_t seen = 0;
  OutputFile file(folder / "out");
  file.on_bytes = [&](std::uint64_t bytes) { seen += bytes; };
  file.write("x");
  file.copy(source, 5, 10'000'000);  // by the system where it can
  file.copy(source, 17, 100);
  file.write("y");
  file.finish();
  EXPECT_TRUE(read_file(folder / "out") ==
              "x" + content.substr(5, 10'000'000) + content.substr(17, 100) + "y");
  EXPECT_EQ(seen, 10'000'102u);
  OutputFile past(folder / "past");
  EXPECT_ERROR(past.copy(source, 11'999'999, 2), corrupt, "outside");
}

TEST(OutputFile, NeverOpensAnExistingFile) {
  const TempFolder folder;
  folder.write("victim", "precious");
  fs::create_symlink(folder / "victim", folder / "link");
  fs::create_symlink(folder / "nothing", folder / "dangling");
  for (const char* name : {"victim", "link", "dangling"}) {
    EXPECT_ERROR(OutputFile(folder / name), failed, "cannot create");
  }
  EXPECT_EQ(read_file(folder / "victim"), "precious");
  EXPECT_FALSE(fs::exists(folder / "nothing"));
}

// The limit on file sizes takes the place of a full disk: a write fails halfway.
TEST(OutputFile, LeavesNothingBehindOnAFullDisk) {
  const TempFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{3 << 20, 3 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      OutputFile file(folder / "a");
      file.zeros(10 << 20);
      file.finish();
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

TEST(WriteAtomically, DoesNotFollowPlantedLinks) {
  const TempFolder folder;
  folder.write("victim", "precious");
  fs::create_symlink(folder / "victim", folder / "a");
  fs::create_symlink(folder / "victim", folder / "a.part");  // an earlier version wrote here
  write_atomically(folder / "a", "new");
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_FALSE(fs::is_symlink(folder / "a"));
  EXPECT_EQ(read_file(folder / "victim"), "precious");
  EXPECT_EQ(names_in(folder.path()).size(), 3u);
}

TEST(WriteAtomically, RefusesFoldersAndPipes) {
  const TempFolder folder;
  fs::create_directory(folder / "d");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_ERROR(write_atomically(folder / "d", "x"), usage, "not a regular file");
  EXPECT_ERROR(write_atomically(folder / "pipe", "x"), usage, "not a regular file");
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  // As /dev/stdout is, where output goes to a file.
  fs::create_symlink("/proc/self/fd/1", folder / "stdout");
  EXPECT_ERROR(write_atomically(folder / "stdout", "x"), usage, "/proc/self/fd/1");
  EXPECT_TRUE(fs::is_symlink(folder / "stdout"));
}

TEST(Inputs, AreRecognisedUnderEveryName) {
  const TempFolder folder;
  const auto in = folder.write("in", "content");
  const auto other = folder.write("other", "content");
  // Other tests of this process may have read files that had these inodes.
  for (const fs::path& path : {in, other}) forget_input(path);
  fs::create_symlink(in, folder / "link");
  fs::create_hard_link(in, folder / "hard");
  refuse_input(in);  // not read yet
  Source::open(in);
  for (const fs::path& name :
       {in, folder / "link", folder / "hard", folder.path() / "." / "in", fs::relative(in)}) {
    EXPECT_ERROR(refuse_input(name), usage, "is an input");
  }
  refuse_input(other);
  refuse_input(folder / "new");
  // Replaced by this process, it is an output.
  write_atomically(in, "new");
  refuse_input(in);
}

}  // namespace
}  // namespace mrrope
