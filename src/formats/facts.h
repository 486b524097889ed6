// SPDX-License-Identifier: Apache-2.0
// What one file says about a model, whatever its format, before the declared scaling is worked into
// the geometry. gguf_facts() and config_facts() make it, finish_model() turns it into a Model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/files/source.h"
#include "formats/architectures.h"
#include "formats/gguf/gguf.h"
#include "mrrope/model.h"

namespace mrrope {

// How the declared scaling is computed, with the defaults of the engines that read the file.
struct ScalingRule {
  double beta_fast = 32;       // yarn; llama3's high_freq_factor
  double beta_slow = 1;        // yarn; llama3's low_freq_factor
  bool truncate = true;        // yarn: the ramp starts and ends at whole pairs
  double ext_factor = 1;       // yarn: how much of the ramp is mixed in (ggml)
  double attention_scale = 1;  // what multiplies cos and sin
  bool original_stated = false;
};

struct Facts {
  std::string where;  // file, for messages
  const Architecture* architecture = nullptr;
  // Filled in but for layers, kv_heads, sliding_window and the trained part of the geometry.
  Model model;
  LayerKeys layer_keys;
  std::int64_t context_length = 0;  // as declared
  ScalingRule rule;
  // Divisors of theta in addition to the declared scaling: a GGUF's rope_freqs.
  std::vector<double> factors;
  // The factors are not an extension but part of the design (pairs that never turn): kept even
  // where the vendor's scaling is replaced.
  bool factors_are_design = false;
};

Facts gguf_facts(const Gguf& gguf);
// Of a config.json; `where` is the file. Throws Error: corrupt (names key and value) or
// unsupported.
Facts config_facts(const nlohmann::json& config, const std::string& where);

// Where a composite model keeps its language model in config.json.
inline constexpr const char* kTextParts[] = {"text_config", "language_config", "llm_config"};

// What a reader found for `name`, its "architecture" or "model_type". Throws Error (unsupported)
// for nullptr and for rows that no plan can extend.
const Architecture& supported(const Architecture* found, const std::string& where, const char* kind,
                              const std::string& name);

// Throws Error (usage) if what a plan was made for is not this model.
void check_made_for(const Geometry& made_for, const Model& model);

// Whether it has layers that rotate but that no plan changes.
bool has_windows_apart(const Model& model);

// Layers, and the geometry with what the model was trained with; see model.cpp for the rules.
Model finish_model(Facts facts, bool replace_scaling);

// Checks with one wording for every format; each throws Error (corrupt) that names `key`.
void check_base(const std::string& where, std::string_view key, double base);
void check_rotary_dim(const std::string& where, std::string_view key, std::int64_t rotary_dim,
                      std::int64_t head);
void check_factor(const std::string& where, std::string_view key, double factor);
void check_attention_scale(const std::string& where, std::string_view key, double scale);
void check_factor_list(const std::string& where, std::string_view key,
                       const std::vector<double>& list, int rotary_dim);

// Limits of what any model has; anything beyond is a damaged file.
constexpr std::int64_t kMaxContext = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 24;
constexpr std::int64_t kMaxHeads = 65536;
constexpr std::int64_t kMaxHead = 65536;
constexpr std::int64_t kMaxLayers = 4096;
constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 28;

// The bytes of all tensors of a safetensors file. What is read is believed only if shapes, types
// and offsets fit each other and fill the file exactly. Throws Error (corrupt).
std::uint64_t safetensors_bytes(const Source& source);

// The files of a model.safetensors.index.json, each a plain name, sorted and without repetition.
std::vector<std::string> read_safetensors_index(const Source& source);

// Bytes of weights of the model in this folder, and its files: model.safetensors, or those of the
// index. 0 and no files if there are no weights; Error (failed) if only some are there.
struct Weights {
  std::uint64_t bytes = 0;
  std::vector<std::filesystem::path> files;
};
Weights find_weights(const std::filesystem::path& folder);

}  // namespace mrrope
