// SPDX-License-Identifier: Apache-2.0
// Opens a local model for a command: what can be refused without the weights is refused first.
#pragma once

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

}  // namespace mrrope::engine
