// SPDX-License-Identifier: Apache-2.0
// A plan into a Hugging Face folder that transformers, vLLM and SGLang run as it is: a new
// config.json beside the old weights and tokenizer.
//
// The form is rope_type longrope with two equal lists, which all three read. transformers takes the
// temperature from attention_factor, vLLM and SGLang from short_mscale and long_mscale. The
// original window stands inside only: vLLM would take one outside for the longest length.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/staging.h"
#include "mrrope/model.h"
#include "mrrope/plan.h"

namespace mrrope {

enum class Dialect {
  v5,  // rope_parameters, with rope_theta inside
  v4,  // rope_scaling, with rope_theta beside it
};

struct HfOptions {
  std::filesystem::path out;
  std::int64_t length = 0;  // tokens: the new max_position_embeddings
  Dialect dialect = Dialect::v5;
  bool native = false;   // linear, yarn or llama3 by name where the plan is one
  bool copy = false;     // weights and tokenizer copied, not linked
  bool replace = false;  // an existing folder of this name goes
};

// The plan's divisors of the bare theta, and its temperature, both with what the model was trained
// with.
std::vector<double> total_factors(const Plan& plan);
double total_attention_scale(const Plan& plan);

// rope_parameters for a model of `length` tokens, without what belongs to one model only.
// `original` is the window it declares.
nlohmann::ordered_json longrope_parameters(const Plan& plan, std::int64_t length,
                                           std::int64_t original);
// The same by name. Throws Error (usage) where the plan has none that readers know.
nlohmann::ordered_json native_parameters(const Plan& plan);

// config.json with the plan in it; everything else stays. Throws Error (unsupported) with the
// reason where this model keeps its rotation in keys that no reader looks for the plan in.
nlohmann::ordered_json extended_config(const nlohmann::ordered_json& config, const Model& model,
                                       const Plan& plan, const HfOptions& options);

// What will not be as the plan says, in words; empty where all is.
std::string hf_caveat(const nlohmann::ordered_json& config, const Model& model);

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

// The folder of a model given as folder, config.json or weights.
std::filesystem::path hf_folder(const Model& model);

}  // namespace mrrope
