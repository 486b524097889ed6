// SPDX-License-Identifier: Apache-2.0
// The one table of architectures: what a model's keys do not say about its positions, and what
// engines do with per-pair factors. Facts of llama.cpp 0.5.0.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mrrope/model.h"

namespace mrrope {

// What stock llama.cpp does with a rope_freqs tensor in a file of this architecture.
enum class FactorSupport {
  used,       // loaded and applied
  long_short,  // only as the pair rope_factors_long / rope_factors_short
  ignored,    // loaded, and the graph passes it by
  refused,    // "wrong number of tensors"
};

struct Architecture {
  std::string_view name;         // general.architecture of a GGUF
  std::string_view huggingface;  // transformers' model_type names, separated by spaces
  Pairing pairing = Pairing::halves;
  FactorSupport factors = FactorSupport::refused;
  bool latent_attention = false;  // MLA
  bool mrope = false;             // positions of several dimensions
  std::string_view unsupported;   // why no plan can be applied; empty where one can
  // How layers differ: see layers_of().
  // (fields added here by the layer rules)
};

std::span<const Architecture> architectures();

// nullptr where the table has no such row.
const Architecture* find_architecture(std::string_view name);
const Architecture* find_huggingface(std::string_view model_type);

// What a file says about its layers, in llama.cpp's words.
struct LayerKeys {
  int layers = 0;
  std::vector<int> kv_heads;       // one per layer, or one for all
  int sliding_window = 0;          // attention.sliding_window
  std::vector<bool> windowed;      // attention.sliding_window_pattern as an array; empty: absent
  int window_period = 0;           // attention.sliding_window_pattern as a number; 0: absent
  int unrotated_period = 0;        // no_rope_layer_interval or its like; 0: absent
};

// Kind, KV heads and cache of every layer. Throws Error (unsupported) if the keys do not fit.
std::vector<Layer> layers_of(const Architecture& architecture, const LayerKeys& keys);

}  // namespace mrrope
