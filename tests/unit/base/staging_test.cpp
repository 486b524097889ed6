// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/output_file.h"
#include "support/test.h"

namespace mrrope {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

TEST(Staging, PublishesOrLeavesNothing) {
  const TempFolder folder;
  {
    Staging staging(folder / "a", 10);
    write_file(staging.path("a"), "whole");
    EXPECT_FALSE(fs::exists(folder / "a"));
    struct stat status {};
    ASSERT_EQ(::stat(staging.path("a").parent_path().parent_path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    staging.publish({"a"}, false);
  }
  {
    Staging staging(folder / "b", 10);
    write_file(staging.path("b"), "half");
  }
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
  EXPECT_EQ(read_file(folder / "a"), "whole");
}

// The next file may get the inode of one that was read here and removed. What a link leads to stays
// an input.
TEST(Staging, ForgetsWhatItRemoves) {
  const TempFolder folder;
  write_file(folder / "input", "kept");
  {
    Staging staging(folder / "a", 1);
    write_file(staging.path("a"), "read");
    fs::create_hard_link(staging.path("a"), folder / "same inode");
    fs::create_symlink(folder / "input", staging.path("link"));
    Source::open(staging.path("a"));
    Source::open(staging.path("link"));
    EXPECT_TRUE(is_input(folder / "same inode"));
  }
  EXPECT_FALSE(is_input(folder / "same inode"));
  EXPECT_TRUE(is_input(folder / "input"));
}

// A name that is taken while the output is written is not replaced either.
TEST(Staging, RefusesAnExistingNameWhenPublishing) {
  const TempFolder folder;
  {
    Staging staging(folder / "a", 1);
    write_file(staging.path("a"), "mine");
    folder.write("a", "theirs");
    EXPECT_ERROR(staging.publish({"a"}, false), usage, "already exists");
  }
  EXPECT_EQ(read_file(folder / "a"), "theirs");
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
}

TEST(Staging, ReplacesFilesAndFoldersButNotOneWithTheOther) {
  const TempFolder folder;
  folder.write("file", "old");
  folder.write("dir/old", "old");
  const auto publish = [&](const char* name, bool as_folder) {
    Staging staging(folder / name, 1);
    write_file(as_folder ? staging.path(name) / "new" : staging.path(name), "new");
    staging.publish({name}, true);
  };
  publish("file", false);
  publish("dir", true);
  EXPECT_EQ(read_file(folder / "file"), "new");
  EXPECT_EQ(names_in(folder / "dir"), Names{"new"});
  EXPECT_ERROR(publish("dir", false), usage, "is a folder");
  EXPECT_ERROR(publish("file", true), usage, "is not a folder");
  EXPECT_EQ(names_in(folder.path()), (Names{"dir", "file"}));
}

TEST(Staging, ReplacesASymbolicLinkAndNotItsTarget) {
  const TempFolder folder;
  folder.write("victim", "precious");
  fs::create_symlink(folder / "victim", folder / "a");
  Staging staging(folder / "a", 1);
  write_file(staging.path("a"), "new");
  staging.publish({"a"}, true);
  EXPECT_FALSE(fs::is_symlink(folder / "a"));
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_EQ(read_file(folder / "victim"), "precious");
}

TEST(Staging, RestoresEverythingWhenOneNameFails) {
  const TempFolder folder;
  folder.write("2", "old");
  fs::create_directory(folder / "1");  // a file cannot replace it
  {
    Staging staging(folder / "1", 1);
    for (const char* name : {"1", "2", "3"}) write_file(staging.path(name), "new");
    EXPECT_ERROR(staging.publish({"1", "2", "3"}, true), usage, "is a folder");
  }
  EXPECT_EQ(read_file(folder / "2"), "old");
  EXPECT_EQ(names_in(folder.path()), (Names{"1", "2"}));
}

TEST(Staging, AllowsOneWriterAtATime) {
  const TempFolder folder;
  const Staging first(folder / "a", 1);
  EXPECT_ERROR(Staging(folder / "a", 1), failed, "another process");
  const Staging other(folder / "b", 1);
}

TEST(Staging, ChecksTheSpaceFirst) {
  const TempFolder folder;
  EXPECT_ERROR(Staging(folder / "a", std::uint64_t{1} << 60), failed, "are free");
  EXPECT_ERROR(Staging(folder / "none" / "a", 1), failed, "cannot create");
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(Staging, RemovesWhatAKilledProcessLeftAndNothingElse) {
  const TempFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Staging staging(folder / "a", 1);
    write_file(staging.path("a"), "half");
    [[maybe_unused]] const ssize_t told = write(ready[1], "x", 1);
    for (;;) pause();
  }
  char c = 0;
  ASSERT_EQ(read(ready[0], &c, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const Names left = names_in(folder.path());
  ASSERT_EQ(left.size(), 1u);
  ASSERT_NE(left[0], "a");
  // Folders of the same pattern that someone else made, and a link to one of ours.
  folder.write("a.part-123456/file", "theirs");
  folder.write("a.part-234567/.mrrope-staging", "something else");
  folder.write("elsewhere/.mrrope-staging", read_file(folder / left[0] / ".mrrope-staging"));
  folder.write("elsewhere/file", "precious");
  fs::create_directory_symlink(folder / "elsewhere", folder / "a.part-345678");
  {
    Staging staging(folder / "a", 1);
    EXPECT_FALSE(fs::exists(folder / left[0]));
  }
  EXPECT_EQ(names_in(folder.path()),
            (Names{"a.part-123456", "a.part-234567", "a.part-345678", "elsewhere"}));
  EXPECT_EQ(read_file(folder / "a.part-123456" / "file"), "theirs");
  EXPECT_EQ(read_file(folder / "elsewhere" / "file"), "precious");
}

}  // namespace
}  // namespace mrrope
