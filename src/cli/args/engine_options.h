// SPDX-License-Identifier: Apache-2.0
// Flags of the local engine, named as in llama.cpp, and what all verbs that run a model share.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "cli/args/options.h"
#include "engine/llama/local.h"

namespace mrrope::cli {

void add_engine(CLI::App& verb, engine::LocalOptions& flags);

// The one plan or ladder that --method or --plan gives for a context of `ctx` tokens; auto if
// neither is given.
struct LadderChoice {
  std::string name;  // that of the method, with settings where auto chose them
  Ladder ladder;
  bool ours = false;     // chosen here, not by the user
  std::int64_t ctx = 0;  // --ctx; without it what the method was made for
  MethodSpec method = {};  // as given by the user
};
LadderChoice choose_ladder(ExtensionFlags flags, const Geometry& geometry, const char* verb);

// What a command reads and writes beside its model.
struct Places {
  std::vector<std::string> reads = {};    // files and folders
  std::vector<std::string> folders = {};  // made if need be, and written into
  std::vector<std::string> writes = {};   // files; "-" is stdout
  // Names that are empty do not count.
};
// What can be refused without the weights, in one order for every verb that runs a model: what is
// read, the plans, what is written. A verb checks its flags before.
void check_before_loading(const Model& model, const std::vector<const Ladder*>& ladders,
                          const Places& places);
// Then options and memory are checked, and the model is loaded.
std::unique_ptr<TimelineModel> open_checked(const Model& model, const engine::LocalOptions& options,
                                            const std::vector<const Ladder*>& ladders,
                                            const Places& places);

// Applies it to the model. If the choice was ours and the keys of this model cannot be turned, it
// becomes static; either way a note says what is used.
void use(TimelineModel& model, LadderChoice& choice);

// For --dry-run: prints the memory that the model needs. Throws Error (failed) if it does not fit.
void print_memory(const Model& model, const engine::LocalOptions& options);

// How fast a model reads: seconds for a token at the start of a text, and what every token before
// it adds.
struct ReadingSpeed {
  double start = 0;
  double slope = 0;
};
// From the seconds of two neighbouring chunks, the second and third of a text. Other work on the
// machine can make the third look slow, and a long text multiplies that: the slope is at most what
// attention can cost.
ReadingSpeed reading_speed(const Model& model, std::int64_t chunk, double second, double third);
// Times three chunks on the loaded model, of a text of at most `longest` tokens; a note says so.
ReadingSpeed measure_speed(TimelineModel& timelines, const Model& model, std::int64_t longest);
// Seconds to read a text of each of these lengths.
double seconds_to_read(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths);
// "about 3 min 05 s at 512 tokens/s, ..." for texts of these lengths.
std::string time_text(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths,
                      const char* ending = "");

}  // namespace mrrope::cli
