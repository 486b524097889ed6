// SPDX-License-Identifier: Apache-2.0
// In which number types a model is run: those of its weights and of its key-value cache.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/llama/local.h"
#include "mrrope/model.h"

namespace mrrope::cli {

// {"weights": "q8_0", "keys": "f16", "values": "f16"}, for run.json. Weights of several types are
// named by their share, largest first: "q4_k + q6_k". Vectors (norms, biases) do not count: they
// are f32 in every file.
nlohmann::ordered_json precision_of(const Model& model, const engine::LocalOptions& options);

// Under a preset of a table that the paper measured in float32: a note if this run is not.
void note_precision(const Model& model, const engine::LocalOptions& options);

}  // namespace mrrope::cli
