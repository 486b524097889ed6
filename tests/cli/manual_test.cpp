// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "mrrope/version.h"
#include "support/command.h"

namespace mrrope {
namespace {

TEST(Manual, Version) {
  EXPECT_EQ(run_command("--version").out, std::string("mrrope ") + MRROPE_VERSION + "\n");
  expect_run("");
}

// What --help knows, the man page and every completion know.
TEST(Manual, EveryFlagIsInThePageAndInEveryCompletion) {
  const std::string man = run_command("--generate man").out;
  EXPECT_TRUE(contains(man, ".SH MRROPE plan"));
  EXPECT_TRUE(contains(man, "\\-\\-rope\\-freq\\-base"));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string text = run_command(std::string("--generate ") + shell).out;
    for (const char* word : {"inspect", "plan", "rope-freq-base", "replace-scaling"}) {
      EXPECT_TRUE(contains(text, word)) << shell << " " << word;
    }
  }
  const std::string markdown = run_command("--generate markdown").out;
  EXPECT_TRUE(contains(markdown, "# mrrope plan\n"));
  EXPECT_TRUE(contains(markdown, "## mrrope eval ppl\n"));
  EXPECT_TRUE(contains(markdown, "| `--rope-freq-base BASE` |"));
  expect_run("--generate powershell", 2);
}

TEST(Manual, VerbsBelowOthersAreInThePageAndInEveryCompletion) {
  const std::string man = run_command("--generate man").out;
  for (const char* verb : {"eval ppl", "eval longbench\\-v2", "theory bound", "theory claims"}) {
    EXPECT_TRUE(contains(man, std::string(".SH MRROPE ") + verb)) << verb;
  }
  const std::string zsh = run_command("--generate zsh").out;
  EXPECT_TRUE(contains(zsh, "_mrrope_eval_ppl() {"));
  EXPECT_TRUE(contains(zsh, "--depths["));
  EXPECT_TRUE(contains(zsh, "elastic\\:pro"));
  EXPECT_TRUE(contains(zsh, "paper/ppl-llama3"));
  const std::string fish = run_command("--generate fish").out;
  EXPECT_TRUE(contains(
      fish,
      "'__fish_seen_subcommand_from eval; and __fish_seen_subcommand_from ppl' -l text -r -F"));
  EXPECT_TRUE(contains(fish, "elastic:pro"));
  EXPECT_TRUE(contains(fish, "far:pro"));
  EXPECT_FALSE(contains(fish, "far:custom"));
  EXPECT_TRUE(contains(fish, "paper/ppl-llama3"));
}

}  // namespace
}  // namespace mrrope
