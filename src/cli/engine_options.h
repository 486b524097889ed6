// SPDX-License-Identifier: Apache-2.0
// Flags of the local engine, named as in llama.cpp, and what every verb that runs a model shares.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "engine/local.h"

namespace mrrope::cli {

void add_engine(CLI::App& verb, LocalOptions& flags);
// --climb, for verbs that read prompts.
void add_climb(CLI::App& verb, LocalOptions& flags);

// For --dry-run: what the model takes, in words.
std::string memory_text(const Model& model, const LocalOptions& options);

// Seconds to read a sequence of each of these lengths: three chunks are timed on the loaded model,
// and the time per token is taken to grow linearly with its position.
double estimate_seconds(LanguageModel& model, const std::vector<std::int64_t>& lengths);

}  // namespace mrrope::cli
