// SPDX-License-Identifier: Apache-2.0
// Rotated queries and keys of a model that runs under a plan, at chosen places of a long text. The
// text is read in ubatches, and only the chosen vectors are kept: beyond the cache of the context,
// memory does not depend on the length.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/llama/local.h"
#include "model/captured.h"
#include "mrrope/plan.h"

namespace mrrope::engine {

class PairReader {
 public:
  // Loads the model and takes the first `tokens` tokens of the text (BOS included). No layers
  // given: four, evenly spread. Throws Error: usage (a text too short, a layer that does not rotate
  // or is not there), unsupported, out_of_memory, failed.
  PairReader(const Model& model, const LocalOptions& options, std::string_view text,
             std::int64_t tokens, std::vector<int> layers);
  ~PairReader();

  const std::vector<LayerHeads>& layers() const noexcept { return layers_; }

  // Reads the first `tokens` tokens under the plan; one pair of vectors for each place. The plan's
  // temperature is in both vectors. Throws Error: usage (a plan of another geometry), failed.
  std::vector<RotatedPair> read(const Plan& plan, std::span<const PairPlace> places,
                                std::int64_t tokens);

 private:
  struct Loaded;
  std::unique_ptr<Loaded> loaded_;
  std::vector<LayerHeads> layers_;
};

}  // namespace mrrope::engine
