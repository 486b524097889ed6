// SPDX-License-Identifier: Apache-2.0
// docs/design/paper.md: every command in it works as printed, and its verdicts are those of the
// claims.

#include "base/words.h"
#include "support/command.h"

namespace mrrope {
namespace {

std::string document() {
  return read_file(std::string(MRROPE_GOLDEN_DIR) + "/../../docs/design/paper.md");
}

// Between backticks, or indented on a line of its own; without the word mrrope.
std::set<std::string> commands() {
  std::set<std::string> out;
  const std::string text = document();
  const std::string start = "mrrope ";
  for (std::size_t at = 0; (at = text.find(start, at)) != std::string::npos; at += start.size()) {
    const bool quoted = at > 0 && text[at - 1] == '`';
    const bool indented = at > 4 && text.substr(at - 5, 5) == "\n    ";
    if (!quoted && !indented) continue;
    const std::size_t end = text.find(quoted ? '`' : '\n', at);
    out.insert(text.substr(at + start.size(), end - at - start.size()));
  }
  return out;
}

// Texts of every kind that a command asks for, long enough for 128K tokens of the tiny model.
class Data {
 public:
  Data() {
    std::string text;
    for (int i = 0; i < 6000; ++i) {
      const std::string x = "$x_{" + std::to_string(i) + "}$";
      text += "Let " + x + " be a number with " + x + " above the one before it.\n";
    }
    write_file(folder.file("texts/long.txt"), text);
    const json item = longbench_item("1", "Single-Document QA", "A theorem.");
    write_file(folder.file("longbench.json"), json::array({item}).dump());
    const std::string context = text.substr(0, text.size() / 100 * 73);
    for (const char* task : {"kv_retrieval", "passkey", "number_string", "code_debug", "math_find",
                             "longdialogue_qa_eng"}) {
      const bool debug = std::string(task) == "code_debug";
      const json sample = {{"id", 0},
                           {"context", context},
                           {"input", "The largest number of the list"},
                           {"answer", debug ? json{"f", "A"} : json{"12345"}},
                           {"options", debug ? json{"f", "g", "h", "i"} : json::array()}};
      write_file(folder.file("infinitebench/" + std::string(task) + ".jsonl"),
                 sample.dump() + "\n");
    }
  }

  std::string path(const std::string& command) const {
    return contains(command, "/infinitebench") ? folder.file("infinitebench")
           : contains(command, "/longbench")   ? folder.file("longbench.json")
                                               : folder.file("texts");
  }

  TempFolder folder;
};

TEST(PaperDocument, CommandsWithoutAModelRun) {
  const TempFolder temp;  // for the picture
  int count = 0;
  for (const std::string& command : commands()) {
    if (contains(command, "MODEL")) continue;
    const CommandResult r = expect_run(command, 0, {}, "cd " + temp.path().string() + ";");
    EXPECT_EQ(r.out.empty(), contains(command, " -o ")) << command;
    ++count;
  }
  EXPECT_GE(count, 15);
}

TEST(PaperDocument, CommandsWithAModelDryRun) {
  const Data data;
  int count = 0;
  for (const std::string& command : commands()) {
    if (!contains(command, "MODEL")) continue;
    std::string line = replaced(command, "MODEL", kModel + " -t 2");
    line = replaced(line, "DATA", data.path(command));
    line = replaced(line, "DIR", data.folder.file("out"));
    // This figure has no --dry-run.
    const bool figure = contains(command, "theory");
    expect_run(line + (figure ? " --train-ctx 192 --tokens 384" : " --dry-run"));
    ++count;
  }
  EXPECT_GE(count, 14);
  EXPECT_FALSE(std::filesystem::exists(data.folder / "out"));
}

TEST(PaperTable, SaysWhatDiffers) {
  const Data data;
  expect_run("--preset paper/ppl-llama2 " + kModel + " --text " + data.folder.file("texts") +
                 " --ctx 4k --lengths 4k --samples 1 --kl-positions 0 --methods pro -t 2",
             0,
             {"Compared with the paper", "pro, paper", "pro, yours",
              "model MrRoPE Tiny (paper: LLaMA2-7B-chat), window 1k (paper: 4k), scale 4 "
              "(paper: 16), weights q8_0 (paper: f32), 1 samples (paper: 10)",
              "not known: whether your texts are those the paper drew"});
}

TEST(PaperDocument, HasEveryClaimItsVerdictAndItsCommand) {
  const std::string text = document();
  const std::set<std::string> known = commands();
  const json j = json::parse(run_command("theory claims --json").out);
  for (const json& claim : j["claims"]) {
    const auto id = claim["id"].get<std::string>();
    EXPECT_TRUE(contains(text, id + ": " + claim["verdict"].get<std::string>())) << id;
    std::string rest = claim["command"].get<std::string>() + "; ";
    for (std::size_t end; (end = rest.find("; ")) != std::string::npos;
         rest = rest.substr(end + 2)) {
      const std::string command = rest.substr(0, end);
      EXPECT_TRUE(known.count(command.substr(std::string("mrrope ").size()))) << id << command;
    }
  }
}

TEST(PaperDocument, EveryPresetIsInIt) {
  const std::string text = document();
  const std::string list = run_command("--presets").out;
  for (std::size_t at = 0; (at = list.find("paper/", at)) != std::string::npos; ++at) {
    const std::string name = list.substr(at, list.find_first_of(" \n", at) - at);
    if (name.rfind("paper/theory-", 0) == 0) continue;  // the commands themselves are there
    EXPECT_TRUE(contains(text, "--preset " + name + " ")) << name;
  }
}

}  // namespace
}  // namespace mrrope
