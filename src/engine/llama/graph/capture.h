// SPDX-License-Identifier: Apache-2.0
// Queries and keys of a real model, read from its graph through the evaluation callback, in a
// context of its own: nothing here touches a model that is under a ladder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/llama/local.h"
#include "model/timeline_model.h"
#include "mrrope/plan.h"

struct llama_model;

namespace mrrope::engine {

// What one rotation of the graph turns.
struct Operand {
  int layer = -1;  // -1: not known
  bool query = false;
};

// From names such as "Qcur-3" or "k_pe-3".
Operand operand_of(const std::string& name);

// The first tokens of a text, with BOS. Throws Error (usage) if the text has fewer.
std::vector<Token> first_tokens(const Tokenizer& vocabulary, std::string_view text,
                                std::int64_t wanted);

struct OpenedModel;

// Rotated queries and keys of a model that runs under a plan, at chosen places of a long text. The
// text is read in ubatches, and only the chosen vectors are kept: beyond the cache of the context,
// memory does not depend on the length.
class PairReader {
 public:
  // Loads the model. No layers given: four, evenly spread. Throws Error: usage (a layer that does
  // not rotate), unsupported, out_of_memory, failed.
  PairReader(const Model& model, const LocalOptions& options, std::vector<Token> text,
             const std::vector<int>& layers);

  const std::vector<LayerHeads>& layers() const noexcept { return layers_; }

  // Reads the first `tokens` tokens under the plan; one pair of vectors for each place. The plan's
  // temperature is in both vectors. Throws Error: usage (a plan of another geometry), failed.
  std::vector<RotatedPair> read(const Plan& plan, std::span<const PairPlace> places,
                                std::int64_t tokens);

 private:
  std::shared_ptr<OpenedModel> opened_;
  std::vector<LayerHeads> layers_;
};

}  // namespace mrrope::engine
