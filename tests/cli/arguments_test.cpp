// SPDX-License-Identifier: Apache-2.0
// How the command line is read: lists, presets, spellings, help.
#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"
#include "support/command.h"

namespace mrrope {
namespace {

const std::string kAbsent = "/absent/model.gguf";
const std::string kCannotOpen = "cannot open \"" + kAbsent + "\"";

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

TEST(Arguments, ListBeforeTheModelDoesNotSwallowIt) {
  const TempFolder folder;
  write_file(folder.file("a.txt"), "some text");
  const std::string text = folder.file("a.txt");
  expect_run(
      "plan --rotary-dim 8 --rope-freq-base 1e4 --train-ctx 4k --method pi --scale "
      "2 -o " +
      folder.file("plan.json"));
  const std::string commands[] = {
      "plan --ctx 4k --method pro",
      "plan --ctx 4k --methods yarn,pro",
      "plan --plan " + folder.file("plan.json"),
      "generate -p Hi --ctx 4k --method pro",
      "export -o out.gguf --ctx 4k --method pro",
      "serve --ctx 4k --method pro",
      "eval ppl --lengths 1k,2k",
      "eval ppl --ctx 2k --text " + text,
      "eval needle --lengths 1k,2k --depths 0,50,100",
      "eval needle --ctx 2k --haystack " + text,
      "eval ruler --lengths 1k --tasks niah,vt",
      "eval infinitebench --lengths 1k --tasks passkey",
      "tune --ctx 4k --text " + text,
      "eval ppl --ctx 4k --methods 'yarn(low=5..6),pro'",
      "theory digits --scale 2 --positions 1,2",
      "theory estimate --bases 1e4,5e5",
      "theory attention --scale 2 --layers 0,1",
      "theory attention --scale 2 --text " + text,
  };
  for (const std::string& command : commands) {
    expect_run(command + " " + kAbsent, 1, {kCannotOpen});
  }
}

TEST(Arguments, ListFlagMayBeRepeated) {
  const std::string geometry = "plan --rotary-dim 8 --rope-freq-base 1e4 --train-ctx 4k --scale 2 ";
  EXPECT_EQ(run_command(geometry + "--method pi --method ntk,none").out,
            run_command(geometry + "--methods pi,ntk,none").out);
  expect_run("eval ppl model.gguf --ctx 4k --text a.txt b.txt", 2, {"b.txt", "--text A --text B"});
}

// Lists that override those of a preset, right before the model.
TEST(Arguments, PresetWithOtherListsStillFindsTheModel) {
  for (const char* preset :
       {"ppl-llama3 --text a.txt --lengths 8k", "ppl-qwen --text a.txt --methods none,pro",
        "ppl-llama2 --text a.txt --min-tokens 64k --lengths 4k,8k", "ruler-llama3 --lengths 8k,16k",
        "ruler-qwen --tasks vt,cwe", "needle-llama3 --depths 0,50",
        "sweep-llama3-high --text a.txt --lengths 64k", "infinitebench --tasks passkey",
        "longbench-llama3 --data a.json --methods yarn,pro"}) {
    expect_run(std::string("--preset paper/") + preset + " " + kAbsent, 1, {kCannotOpen});
  }
}

TEST(Arguments, PresetAcceptsItsOwnVerbAndRefusesOthers) {
  const std::string preset = "--preset paper/ruler-qwen ";
  EXPECT_TRUE(contains(run_command(preset + "eval ruler " + kAbsent).err, kAbsent));
  for (const std::string verb : {"plan", "serve", "report", "eval ppl", "demo"}) {
    expect_run(preset + verb + " " + kAbsent, 2, {"paper/ruler-qwen runs mrrope eval ruler"});
  }
  EXPECT_TRUE(contains(run_command("--preset paper/ruler-quen x").err, "paper/ruler-qwen?"));
  // A model that is typed replaces the preset's own.
  for (const std::string& model : {kAbsent, "--scale 4 " + kAbsent, "-m " + kAbsent}) {
    expect_run("--preset paper/theory-bound " + model, 1, {kCannotOpen});
  }
  expect_run("--preset paper/theory-bound --length 1k");
}

TEST(Arguments, MisspelledWordGetsASuggestion) {
  const std::string geometry = "plan --rotary-dim 8 --rope-freq-base 1e4 --train-ctx 4k --scale 2 ";
  const std::pair<std::string, std::string> cases[] = {
      {"inspct model.gguf", "did you mean inspect?"},
      {"evla ppl model.gguf", "did you mean eval?"},
      {"eval needel model.gguf", "did you mean needle?"},
      {"theory bond llama2", "did you mean bound?"},
      {"plan model.gguf --metod pro", "did you mean --method?"},
      {"eval ppl model.gguf --lenghts 1k,2k", "did you mean --lengths?"},
      {"eval ppl model.gguf --lenghts=1k,2k", "did you mean --lengths?"},
      {"--verison", "did you mean --version?"},
      {geometry + "--method yran", "did you mean yarn?"},
      {geometry + "--method elastic:prro", "did you mean pro?"},
  };
  for (const auto& [arguments, suggestion] : cases) expect_run(arguments, 2, {suggestion});
}

TEST(Arguments, FlagNamesOfOtherProgramsAreAccepted) {
  const std::string geometry = "plan --rotary-dim 8 --rope-freq-base 1e4 --train-ctx 4k --json ";
  const std::string usual = run_command(geometry + "--method pi --ctx 8k").out;
  ASSERT_FALSE(usual.empty());
  EXPECT_EQ(run_command(geometry + "--method pi --ctx-size 8k").out, usual);
  EXPECT_EQ(run_command(geometry + "--method pi --ctx-size=8k").out, usual);
  EXPECT_EQ(run_command(geometry + "--method PI -c 8k").out, usual);
  EXPECT_EQ(run_command(geometry + "--method Elastic:Pi --ctx 8k").out,
            run_command(geometry + "--method elastic:pi --ctx 8k").out);
  for (const char* flags : {"--temperature 0.5", "--n-predict 3", "--n-gpu-layers 0", "-ngl 0",
                            "--max-new-tokens 3", "-fa off", "-ub 64"}) {
    expect_run("generate -p Hi " + kAbsent + " " + flags, 1, {kCannotOpen});
  }
  for (const char* typed : {"run ", "show ", "generate -cnv ", "chat --conversation -sys Hi ",
                            "generate -p Hi -no-cnv "}) {
    expect_run(typed + kAbsent, 1, {kCannotOpen});
  }
}

TEST(Arguments, APromptWithoutItsFlagIsNamed) {
  expect_run("run m.gguf 'Why so?'", 2, {"unexpected argument", "-p 'Why so?'"});
}

TEST(Arguments, ScalingFlagsOfLlamaCppAndVllm) {
  const std::string geometry = "plan --rotary-dim 64 --rope-freq-base 1e4 --json ";
  const auto same = [&](const std::string& theirs, const std::string& ours) {
    const CommandResult r = expect_run(geometry + theirs);
    EXPECT_EQ(r.out, run_command(geometry + ours).out) << theirs;
  };
  same("--yarn-orig-ctx 4k --rope-scaling linear --rope-scale 2",
       "--train-ctx 4k --method pi --scale 2");
  same(
      "--yarn-orig-ctx 4k --rope-scaling=yarn --rope-scale 4 --yarn-beta-fast 16 "
      "--yarn-beta-slow 2",
      "--train-ctx 4k --method 'yarn(beta_fast=16,beta_slow=2)' --scale 4");
  expect_run("serve m.gguf --rope-scaling '{\"rope_type\":\"yarn\",\"factor\":4.0}'", 2,
             {"--method yarn --scale 4"});
  expect_run("generate m.gguf --yarn-attn-factor 1", 2, {"--method 'yarn(attn_coef=0.1)'"});
  expect_run("generate m.gguf --yarn-ext-factor=1", 2, {"--method yarn or --method pi"});
}

TEST(Arguments, HelpIsAVerbToo) {
  EXPECT_EQ(expect_run("help").out, run_command("--help").out);
  EXPECT_EQ(expect_run("help eval ppl").out, run_command("eval ppl --help").out);
  expect_run("help nosuch", 2, {"there is no verb 'nosuch'", "mrrope help words"});
  expect_run("help eval ppx", 2, {"did you mean ppl?"});
  EXPECT_TRUE(contains(expect_run("help parameters").out, "(default 1.19; far: 1.42)"));
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

TEST(Arguments, ANumberThatIsNoneIsNamed) {
  expect_run("plan m.gguf --scale abc", 2, {"--scale takes a number, not 'abc'"});
  expect_run("generate m.gguf -t 1.5", 2, {"--threads takes a whole number, not '1.5'"});
  expect_run("generate m.gguf -t 99999999999", 2,
             {"'99999999999' is out of the range of --threads"});
  expect_run("eval needle m.gguf --depths 0,x", 2, {"--depths takes a number"});
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
