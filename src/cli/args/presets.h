// SPDX-License-Identifier: Apache-2.0
// The tables and figures of the MrRoPE paper as commands: --preset NAME stands for a verb and its
// flags. What is typed beside it goes before what the preset says. The numbers of paper/NAME are
// those of table NAME in data/paper.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mrrope::cli {

struct Preset {
  std::string name;     // "paper/ppl-llama3"
  std::string what;     // which table or figure, of which model
  std::string command;  // verbs, then flags with one value each
};

const std::vector<Preset>& presets();

// The arguments with --preset NAME replaced. Throws Error (usage): no such preset, or one of
// another verb. Remembers which one it was.
std::vector<std::string> with_preset(const std::vector<std::string>& arguments);

// The paper's numbers with those of results.json under them; empty where no preset is in use, or
// the paper prints none.
std::string preset_table(const nlohmann::ordered_json& results);

// One line per preset, for --help.
std::string preset_list();

}  // namespace mrrope::cli
