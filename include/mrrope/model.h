// SPDX-License-Identifier: Apache-2.0
// The facts of a model, read from the header of its file: never from its weights, and without
// trusting any count, offset or name in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "mrrope/geometry.h"

namespace mrrope {

// What one layer does with positions.
enum class LayerKind {
  full,       // attention over everything; rotates; a plan applies
  windowed,   // sliding-window attention; rotates with its own settings; plans leave it alone
  unrotated,  // attention without rotary embedding
  recurrent,  // no attention and no key-value cache that grows
};

struct Layer {
  LayerKind kind = LayerKind::full;
  int kv_heads = 0;
  bool windowed_cache = false;  // keeps only the last sliding_window tokens
  // Rotations of one pass that a plan changes: of the queries, of the keys, of an indexer.
  // 0 unless kind is full; a layer that reads an earlier layer's keys has kv_heads 0 and one less.
  int rotations = 0;
};

// The scaling that a model's own files declare.
struct DeclaredScaling {
  std::string type;  // "none", "linear", "yarn", "llama3", "longrope", "dynamic", ...
  double factor = 1;
  std::int64_t original_length = 0;            // 0: not declared
  std::optional<double> beta_fast, beta_slow;  // yarn and llama3, where config.json states them
  std::vector<double> short_factor;            // longrope only
  std::vector<double> long_factor;             // longrope, or rope_freqs of a GGUF
  bool trained = false;  // part of how the model was trained, so that plans keep it
};

struct Model {
  std::filesystem::path path;
  std::string format;        // "gguf" or "huggingface"
  std::string name;          // may be empty
  std::string architecture;  // as llama.cpp spells it

  int embedding = 0;
  int heads = 0;
  int kv_heads = 0;      // the largest of all layers
  int key_length = 0;    // elements of one key head in the cache
  int value_length = 0;  // elements of one value head in the cache
  int vocabulary = 0;    // 0: not stated
  std::vector<Layer> layers;
  int sliding_window = 0;           // tokens, 0: none
  bool latent_attention = false;    // MLA: the cache holds one compressed vector per token
  std::vector<int> mrope_sections;  // empty: positions are one-dimensional

  Geometry geometry;  // of the layers a plan applies to
  DeclaredScaling scaling;
  std::uint64_t weight_bytes = 0;            // 0: no weights next to config.json
  std::vector<std::filesystem::path> files;  // all parts
};

// A GGUF file (any part of a split one), a Hugging Face folder, its config.json or one of its
// .safetensors files. Throws Error: failed (cannot be read), corrupt, or unsupported with the
// reason why the model's positions cannot be extended.
//
// replace_scaling: forget the vendor's scaling; start from the bare base and the original window.
Model read_model(const std::filesystem::path& path, bool replace_scaling = false);

// Bytes of key-value cache for `tokens` tokens of one sequence.
// bits_per_element: 16 for f16, 8.5 for q8_0, 32 for f32.
std::uint64_t kv_bytes(const Model& model, std::int64_t tokens, double bits_per_element);

}  // namespace mrrope
