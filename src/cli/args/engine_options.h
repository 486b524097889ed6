// SPDX-License-Identifier: Apache-2.0
// Flags of the local engine, named as in llama.cpp, and what all verbs that run a model share.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "cli/args/options.h"
#include "engine/run/open.h"

namespace mrrope::cli {

// A flag with the name of its value; with its default in the help.
template <typename T>
CLI::Option* add_value(CLI::App& verb, const char* name, T& value, const char* type,
                       const std::string& help) {
  return verb.add_option(name, value, help)->type_name(type);
}
template <typename T>
CLI::Option* add_default(CLI::App& verb, const char* name, T& value, const char* type,
                         const std::string& help) {
  return add_value(verb, name, value, type, help)->capture_default_str();
}

void add_engine(CLI::App& verb, engine::LocalOptions& flags);

// The one plan or ladder that --method or --plan gives for a context of `ctx` tokens; auto if
// neither is given.
struct LadderChoice {
  std::string name;  // that of the method, with settings where auto chose them
  Ladder ladder;
  bool ours = false;       // chosen here, not by the user
  std::int64_t ctx = 0;    // --ctx; without it what the method was made for
  MethodSpec method = {};  // as given by the user
};
LadderChoice choose_ladder(ExtensionFlags flags, const Geometry& geometry, const char* verb);

// Applies it to the model. If the choice was ours and the keys of this model cannot be turned, it
// becomes static; either way a note says what is used.
void use(TimelineModel& model, LadderChoice& choice);

// For --dry-run: prints the memory that the model needs. Throws Error (failed) if it does not fit.
void print_memory(const Model& model, const engine::LocalOptions& options);

// Says in a note that it times the model.
engine::ReadingSpeed measure_speed(TimelineModel& timelines, const Model& model,
                                   std::int64_t longest);

using engine::check_before_loading;
using engine::open_checked;
using engine::Places;
using engine::reading_speed;
using engine::ReadingSpeed;
using engine::seconds_to_read;
using engine::time_text;

}  // namespace mrrope::cli
