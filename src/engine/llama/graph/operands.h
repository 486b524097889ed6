// SPDX-License-Identifier: Apache-2.0
// Which rotations of a graph are queries and which are keys, and what is read through them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/llama/graph/inject.h"
#include "engine/llama/local.h"
#include "model/timeline_model.h"

namespace mrrope::engine {

// What one rotation of the graph turns.
struct Operand {
  int layer = -1;  // -1: not known
  bool query = false;
};

// From names such as "Qcur-3" or "k_pe-3".
Operand operand_of(const std::string& name);

// Layers with a query and a key that follow plans, in ascending order.
std::vector<int> rotating_layers(const std::vector<Rotation>& rotations);

// The wanted ones; none wanted: four, evenly spread. Throws Error: unsupported (there are none),
// usage (a layer that is not there).
std::vector<int> chosen_layers(const std::vector<int>& there, std::vector<int> wanted);

// The first tokens of a text, with BOS. Throws Error (usage) if the text has fewer.
std::vector<Token> first_tokens(const llama_model* model, const std::string& file,
                                std::string_view text, std::int64_t wanted);

// A model whose queries and keys are read, and what it reads.
struct Opened {
  LlamaPtr<llama_model> model;
  llama_context_params params;  // one sequence of as many tokens
  std::vector<Token> text;      // with BOS
  std::vector<Rotation> rotations;
  std::vector<int> layers;
};
// Throws Error: unsupported, failed, usage (a text of fewer tokens, layers as above).
Opened open_to_read(const Model& model, const LocalOptions& options, bool whole_windows,
                    std::string_view text, std::int64_t tokens, std::vector<int> layers);

}  // namespace mrrope::engine
