// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "mrrope/version.h"
#include "support/command.h"
#include "support/temp_folder.h"

namespace mrrope {
namespace {

using test::read_file;
using test::TempFolder;
using test::write_file;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Manual, VersionAndHelp) {
  EXPECT_EQ(run_command("--version").out, std::string("mrrope ") + MRROPE_VERSION + "\n");
  for (const char* verb : {"", "plan ", "inspect "}) {
    const CommandResult r = run_command(std::string(verb) + "--help");
    EXPECT_EQ(r.exit_code, 0);
    EXPECT_TRUE(contains(r.out, "Examples:")) << r.out;
  }
  EXPECT_EQ(run_command("").exit_code, 0);
}

// What --help knows, the man page and every completion know.
TEST(Manual, EveryFlagIsInThePageAndInEveryCompletion) {
  const std::string man = run_command("--generate man").out;
  EXPECT_TRUE(contains(man, ".SH MRROPE plan"));
  EXPECT_TRUE(contains(man, "\\-\\-beta\\-fast"));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string text = run_command(std::string("--generate ") + shell).out;
    for (const char* word : {"inspect", "plan", "beta-fast", "replace-scaling"}) {
      EXPECT_TRUE(contains(text, word)) << shell << " " << word;
    }
  }
  EXPECT_EQ(run_command("--generate powershell").exit_code, 2);
}

TEST(Manual, BashReadsItsCompletion) {
  const TempFolder folder;
  write_file(folder.file("mrrope.bash"), run_command("--generate bash").out);
  const std::string script = "bash -c '. " + folder.file("mrrope.bash") +
                             " && COMP_WORDS=(mrrope plan --beta-f) COMP_CWORD=2 && _mrrope && "
                             "[ \"${COMPREPLY[*]}\" = --beta-fast ]'";
  EXPECT_EQ(std::system(script.c_str()), 0);
}

}  // namespace
}  // namespace mrrope
