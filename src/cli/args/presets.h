// SPDX-License-Identifier: Apache-2.0
// The tables and figures of the MrRoPE paper as commands: --preset NAME is replaced by a verb and
// its flags. Flags that are typed override those of the preset. The numbers of paper/NAME are those
// of table NAME in data/paper.json.
#pragma once

#include <CLI/CLI.hpp>

#include "engine/run/open.h"
#include "eval/results/result_table.h"

namespace mrrope::cli {

struct Preset {
  std::string name;      // "paper/ppl-llama3"
  std::string what;      // which table or figure, of which model
  std::string needs;     // what is typed after the name: "MODEL --text DATA"; may be empty
  std::string command;   // verbs, then flags with one value or none
  std::string notes{};   // how it follows the paper; whole lines
  bool float32 = false;  // the paper says that it measured in float32
};

const std::vector<Preset>& presets();

// The arguments in the spelling of --help, with --preset NAME replaced; `app` knows the verbs.
// Throws Error (usage) if there is no such preset or another verb was typed. Remembers the preset,
// one of `known`, for preset_table().
std::vector<std::string> with_preset(const CLI::App& app, std::vector<std::string> arguments,
                                     const std::vector<Preset>& known = presets());

// The preset of this command, or nullptr.
const Preset* chosen_preset();

// Under a preset of a table that the paper measured in float32: a note if this run is not.
void note_precision(const Model& model, const engine::LocalOptions& options);

// What a preset runs and how that follows the paper.
std::string preset_help(const Preset& preset);

// The paper's numbers with those of a run under them and what differs in the setting; empty
// if no preset is in use or the paper prints no numbers. run: run.json.
std::string preset_table(const nlohmann::ordered_json& run, const eval::ResultTable& results);

// For --preset list, or its other spelling --presets: two lines per preset, what it is and the
// command to type. Empty for other arguments.
std::string preset_list(const std::vector<std::string>& arguments);

}  // namespace mrrope::cli
