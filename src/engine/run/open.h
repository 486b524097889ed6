// SPDX-License-Identifier: Apache-2.0
// Opens a local model for a command: what can be refused without the weights is refused first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/llama/local.h"
#include "mrrope/ladder.h"

namespace mrrope::engine {

// What a command reads and writes beside its model. Names that are empty do not count.
struct Places {
  std::vector<std::string> reads = {};    // files and folders
  std::vector<std::string> folders = {};  // made if need be, and written into
  std::vector<std::string> writes = {};   // files; "-" is stdout
};

// In one order for every verb that runs a model: what is read, the plans, what is written. A verb
// checks its flags before.
void check_before_loading(const Model& model, const std::vector<const Ladder*>& ladders,
                          const Places& places);

// Then options and memory are checked, and the model is loaded.
std::unique_ptr<TimelineModel> open_checked(const Model& model, const LocalOptions& options,
                                            const std::vector<const Ladder*>& ladders,
                                            const Places& places);

// A line on the memory that the model needs, with a line end.
std::string memory_text(const Model& model, const LocalOptions& options);
// Throws Error (failed) if it does not fit.
void check_fits_memory(const Model& model, const LocalOptions& options);

// {"weights": "q8_0", "keys": "f16", "values": "f16"}, for run.json. Weights of several types are
// named by their share, largest first: "q4_k + q6_k". Vectors (norms, biases) do not count: they
// are f32 in every file.
nlohmann::ordered_json precision_of(const Model& model, const LocalOptions& options);

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
// Times three chunks on the loaded model, of a text of at most `longest` tokens; note: is told so
// before.
ReadingSpeed measure_speed(TimelineModel& timelines, const Model& model, std::int64_t longest,
                           const std::function<void(const std::string&)>& note);
// Seconds to read a text of each of these lengths.
double seconds_to_read(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths);
// "about 3 min 05 s at 512 tokens/s, ..." for texts of these lengths.
std::string time_text(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths,
                      const char* ending = "");

}  // namespace mrrope::engine
