// SPDX-License-Identifier: Apache-2.0
// Flags of the local engine, named as in llama.cpp, and what every verb that runs a model shares.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/args/options.h"
#include "engine/llama/local.h"

namespace mrrope::cli {

void add_engine(CLI::App& verb, LocalOptions& flags);
// --climb, for verbs that read prompts.
void add_climb(CLI::App& verb, LocalOptions& flags);

// The one plan or ladder that --method or --plan give for a context of `ctx` tokens; where neither
// is given, elastic:pro past the window.
struct LadderChoice {
  std::string name;
  Ladder ladder;
  bool ours = false;  // not the user's
};
LadderChoice choose_ladder(ExtensionFlags flags, const Geometry& geometry, std::int64_t ctx,
                           const char* verb);
// Puts the model under it. Where the choice was ours and the keys of this model cannot be turned,
// it becomes static; either way a note says what it is.
void use(TimelineModel& model, LadderChoice& choice);

// For --dry-run: what the model takes, in words.
std::string memory_text(const Model& model, const LocalOptions& options);

// Seconds to read a sequence of each of these lengths: three chunks are timed on the loaded model,
// and the time per token is taken to grow linearly with its position.
double estimate_seconds(TimelineModel& model, const std::vector<std::int64_t>& lengths);

}  // namespace mrrope::cli
