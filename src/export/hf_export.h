// SPDX-License-Identifier: Apache-2.0
// Writes a plan into a Hugging Face folder that transformers, vLLM and SGLang run unchanged: a new
// config.json with the old weights and tokenizer.
//
// The form is rope_type longrope with two equal lists, which all three read. transformers takes the
// temperature from attention_factor, vLLM and SGLang from short_mscale and long_mscale. The
// original window is stated only inside rope_parameters: outside, vLLM would take it for the
// longest length.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files/output_file.h"
#include "mrrope/model.h"
#include "mrrope/plan.h"

namespace mrrope::exporting {

enum class Dialect {
  v5,      // rope_parameters, with rope_theta inside
  v4,      // rope_scaling, with rope_theta outside it
  mrrope,  // like v5, but rope_type mrrope, for vLLM with the plugin of mrrope's wheel
};

struct HfOptions {
  std::filesystem::path out;
  std::int64_t length = 0;  // tokens: the new max_position_embeddings
  Dialect dialect = Dialect::v5;
  bool native = false;   // linear, yarn or llama3 by name, if the plan is one of them
  bool copy = false;     // weights and tokenizer copied, not linked
  bool replace = false;  // replace an existing folder that mrrope export wrote
};

// The plan's divisors of the bare theta, and its temperature, both including what the model was
// trained with.
std::vector<double> total_factors(const Plan& plan);
double total_attention_scale(const Plan& plan);

// rope_parameters for a context of `length` tokens, without keys that are specific to one model.
// `original` is the window it declares.
nlohmann::ordered_json longrope_parameters(const Plan& plan, std::int64_t length,
                                           std::int64_t original);
// By name. Throws Error (usage) if readers have no name for the plan.
nlohmann::ordered_json native_parameters(const Plan& plan);

// config.json with the plan in it; all other keys stay. Throws Error (unsupported) with the reason
// if this model keeps its rotation in keys where readers would not find the plan.
nlohmann::ordered_json extended_config(const nlohmann::ordered_json& config, const Model& model,
                                       const Plan& plan, const HfOptions& options);

// How readers of the folder will deviate from the plan, in words; empty if they will not.
std::string hf_caveat(const nlohmann::ordered_json& config, const Model& model, Dialect dialect);

// Whether checkpoints of this model interleave the elements of a pair.
bool interleaves(const Model& model);

// Verifies a folder that has no final name yet; throws to reject it.
using HfVerify = std::function<void(Staging& staging, const std::filesystem::path& folder)>;

// Writes the folder next to its final place, verifies it, and only then publishes it. With
// `replace` it replaces a folder that mrrope export wrote and that holds nothing else; any other
// folder, the input, a folder around or inside the input, and one that holds the files that the
// input links to are refused. `progress`: bytes copied since the last call; may throw to give up.
// Throws Error: usage, unsupported, failed (there are no weights, for example), and what `verify`
// throws.
void export_huggingface(const Model& model, const Plan& plan, const HfOptions& options,
                        const std::function<void(std::uint64_t)>& progress = {},
                        const HfVerify& verify = {});

// Bytes that will be copied; 0 if files are linked.
std::uint64_t bytes_to_copy(const Model& model, const HfOptions& options);

// The folder of a model that was given as a folder, config.json or weights.
std::filesystem::path hf_folder(const Model& model);

}  // namespace mrrope::exporting
