// SPDX-License-Identifier: Apache-2.0
// What help says: verbs, examples, words. tests/transcripts/arguments.txt has how flags are read.
#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"
#include "support/command.h"

namespace mrrope {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string first_word(const std::string& text) {
  std::istringstream in(text);
  std::string word;
  in >> word;
  return word;
}

// The verbs that the help of "" or "eval " lists, "eval ppl" and the like included.
std::vector<std::string> verbs_below(const std::string& path) {
  std::vector<std::string> verbs;
  bool listed = false;
  for (const std::string& line : lines_of(run_command(path + "--help").out)) {
    if (line == "Verbs:") {
      listed = true;
    } else if (line.empty() || line[0] != ' ') {
      listed = false;
    } else if (listed && line.size() > 2 && line[2] != ' ') {
      verbs.push_back(path + first_word(line));
      const auto below = verbs_below(verbs.back() + " ");
      verbs.insert(verbs.end(), below.begin(), below.end());
    }
  }
  return verbs;
}

// docs/glossary.md and mrrope help words have one source.
TEST(Arguments, TheGlossaryHasEveryWord) {
  const std::string root = MRROPE_GOLDEN_DIR "/../..";
  const std::string page = read_file(root + "/docs/glossary.md");
  const std::string printed = expect_run("help words").out;
  const json terms = json::parse(read_file(root + "/src/report/page/terms.json"));
  EXPECT_GT(terms.size(), 20u);
  for (const json& row : terms) {
    const auto term = row["term"].get<std::string>();
    EXPECT_TRUE(contains(printed, "\n  " + term) || printed.starts_with("  " + term)) << term;
    EXPECT_TRUE(contains(page, cat("| ", term, " | ", row["meaning"].get<std::string>(), " |\n")))
        << term;
  }
  EXPECT_EQ(std::count(page.begin(), page.end(), '\n'), std::int64_t(terms.size()) + 6);
}

TEST(Arguments, EveryVerbShowsItsOwnExamples) {
  const std::vector<std::string> verbs = verbs_below("");
  EXPECT_GT(verbs.size(), 20u);
  for (const std::string& verb : verbs) {
    const std::vector<std::string> help = lines_of(run_command(verb + " --help").out);
    const auto examples = std::find(help.begin(), help.end(), "Examples:");
    ASSERT_NE(examples, help.end()) << verb;
    for (const std::string& line : help) EXPECT_FALSE(line.ends_with("Excludes: ")) << verb;
    std::size_t own = 0;
    std::size_t others = 0;
    for (auto line = examples + 1; line != help.end(); ++line) {
      if (line->rfind("  mrrope ", 0) != 0) continue;
      ++((*line + " ").rfind("  mrrope " + verb + " ", 0) == 0 ? own : others);
    }
    EXPECT_GT(own, 0u) << verb;
    EXPECT_EQ(others, 0u) << verb;
  }
}

// -h has the daily flags on one screen, --help all of them in groups.
TEST(Arguments, HelpFitsOnAScreen) {
  std::vector<std::string> verbs = verbs_below("");
  verbs.emplace_back("");
  for (const std::string& verb : verbs) {
    const CommandResult brief = expect_run(verb + " -h");
    EXPECT_LE(lines_of(brief.out).size(), 40u) << brief.out;
    const std::string all = run_command(verb + " --help").out;
    for (const std::string& text : {brief.out, all}) {
      for (const std::string& line : lines_of(text)) {
        EXPECT_LE(line.size(), 100u) << verb << "\n" << line;
      }
    }
    if (contains(all, "\n  --method NAME")) {
      EXPECT_TRUE(contains(all, "\nMethod:\n")) << all;
    }
  }
  EXPECT_TRUE(contains(run_command("plan -h").out, "All flags: --help"));
  EXPECT_FALSE(contains(run_command("plan --help").out, "--beta-fast")) << "an old spelling";
}

// In an empty folder: files are missing, but the command line is always understood.
TEST(Arguments, EveryExampleParses) {
  const TempFolder folder;
  int count = 0;
  for (const std::string& verb : verbs_below("")) {
    if (verb == "demo") continue;  // runs for a minute
    const std::vector<std::string> help = lines_of(run_command(verb + " --help").out);
    for (std::size_t i = 0; i < help.size(); ++i) {
      if (help[i].rfind("  mrrope ", 0) != 0) continue;
      std::string command = help[i].substr(9);
      while (command.back() == '\\') command = command.substr(0, command.size() - 1) + help[++i];
      command = command.substr(0, command.find('#'));
      if (contains(command, "--endpoint")) continue;
      const CommandResult r = run_command(command, cat("cd ", folder.file("."), ";"));
      EXPECT_FALSE(contains(r.err, "see: mrrope")) << command << "\n" << r.err;
      ++count;
    }
  }
  EXPECT_GT(count, 40);
}

}  // namespace
}  // namespace mrrope
