// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "mrrope/version.h"
#include "support/command.h"

namespace mrrope {
namespace {

TEST(Manual, Version) {
  EXPECT_EQ(run_command("--version").out, std::string("mrrope ") + MRROPE_VERSION + "\n");
  expect_run("");
}

std::size_t lines_in(const std::string& text) {
  return std::size_t(std::count(text.begin(), text.end(), '\n'));
}

// The names of a page of the manual in its list of verbs.
std::vector<std::string> verbs_in(const std::string& man) {
  std::vector<std::string> verbs;
  const std::string mark = "\n\\fBmrrope\\-";
  for (std::size_t at = 0; (at = man.find(mark, at)) != std::string::npos;) {
    at += mark.size();
    verbs.push_back(man.substr(at, man.find('\\', at) - at));
  }
  return verbs;
}

// What --help knows, the pages of the manual and every completion know.
TEST(Manual, EveryFlagIsInAPageAndInEveryCompletion) {
  EXPECT_TRUE(contains(run_command("--generate man-plan").out, "\\-\\-rope\\-freq\\-base"));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string text = run_command(std::string("--generate ") + shell).out;
    for (const char* word : {"inspect", "plan", "rope-freq-base", "replace-scaling"}) {
      EXPECT_TRUE(contains(text, word)) << shell << " " << word;
    }
  }
  const std::string markdown = run_command("--generate markdown").out;
  EXPECT_TRUE(contains(markdown, "\n## mrrope plan\n"));
  EXPECT_TRUE(contains(markdown, "\n### mrrope eval ppl\n"));
  EXPECT_TRUE(contains(markdown, "| `--rope-freq-base BASE` |"));
  expect_run("--generate powershell", 2);
  expect_run("--generate man-nosuch", 2);
}

// mrrope.1 names the verbs; each has a page of its own, which is installed.
TEST(Manual, EveryVerbHasAPage) {
  const std::string man = run_command("--generate man").out;
  EXPECT_LE(lines_in(man), 600u);
  const std::vector<std::string> verbs = verbs_in(man);
  EXPECT_GT(verbs.size(), 10u);
  const std::string install =
      read_file(std::string(MRROPE_GOLDEN_DIR) + "/../../cmake/install.cmake");
  std::string all = "foreach(verb";
  for (const std::string& verb : verbs) {
    all += " " + verb;
    const std::string page = run_command("--generate man-" + verb).out;
    EXPECT_TRUE(contains(page, ".SH NAME\nmrrope\\-" + verb + " \\- ")) << page.substr(0, 200);
    EXPECT_TRUE(contains(page, "\nExamples:\n")) << verb;
  }
  EXPECT_TRUE(contains(install, all + ")\n")) << all;
}

TEST(Manual, VerbsBelowOthersAreInThePageAndInEveryCompletion) {
  for (const auto& [verb, below] :
       {std::pair{"eval", "eval ppl"}, std::pair{"eval", "eval longbench\\-v2"},
        std::pair{"theory", "theory bound"}, std::pair{"theory", "theory claims"}}) {
    const std::string man = run_command(std::string("--generate man-") + verb).out;
    EXPECT_TRUE(contains(man, std::string(".SH MRROPE ") + below)) << below;
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

// What bash offers for the words of a command line, the last of which is being typed.
std::string bash_offers(const TempFolder& folder, const std::string& words) {
  write_file(folder.file("mrrope.bash"), run_command("--generate bash").out);
  const std::string line = "cd " + folder.file(".") +
                           " && bash -c '. ./mrrope.bash && COMP_WORDS=(mrrope " + words +
                           ") && COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && { _mrrope; echo "
                           "\"${COMPREPLY[*]}\"; }' > offers";
  EXPECT_EQ(std::system(line.c_str()), 0) << words;
  std::string offers = read_file(folder.file("offers"));
  if (!offers.empty()) offers.pop_back();
  return offers;
}

TEST(Manual, BashCompletesVerbsFlagsMethodsPresetsAndFiles) {
  const TempFolder folder;
  write_file(folder.file("tiny.gguf"), "");
  ASSERT_EQ(std::system(("mkdir " + folder.file("texts")).c_str()), 0);
  const auto offers = [&](const std::string& words) { return bash_offers(folder, words); };
  EXPECT_EQ(offers("pla"), "plan");
  EXPECT_EQ(offers("plan --rope-f"), "--rope-freq-base");
  EXPECT_EQ(offers("eval n"), "needle");
  EXPECT_EQ(offers("eval needle --dep"), "--depths");
  EXPECT_EQ(offers("eval ppl --dep"), "");
  EXPECT_EQ(offers("theory cl"), "claims");
  EXPECT_EQ(offers("plan --method un"), "uni");
  EXPECT_EQ(offers("plan --method yarn,un"), "yarn,uni");
  EXPECT_EQ(offers("plan --method au"), "auto");
  EXPECT_EQ(offers("plan --method pro,elastic:un"), "pro,elastic:uni");
  EXPECT_EQ(offers("plan --method far:un"), "far:uni");
  EXPECT_EQ(offers("plan --method elastic:no"), "");
  EXPECT_EQ(offers("plan --method elastic : un"), "uni");
  EXPECT_EQ(offers("plan --method elastic : au"), "");
  EXPECT_EQ(offers("plan --method far : un"), "uni");
  EXPECT_EQ(offers("generate ti"), "tiny.gguf");
  EXPECT_EQ(offers("eval ppl tiny.gguf --text te"), "texts");
  EXPECT_EQ(offers("eval ppl tiny.gguf -o t"), "texts");
  EXPECT_EQ(offers("plan tiny.gguf --scale t"), "");
  EXPECT_EQ(offers("eval ppl tiny.gguf --select r"), "random");
  EXPECT_EQ(offers("--preset paper/ppl-q"), "paper/ppl-qwen");
}

}  // namespace
}  // namespace mrrope
