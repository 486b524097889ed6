// SPDX-License-Identifier: Apache-2.0
// Writes a plan into files that other engines run: a GGUF file, a Hugging Face folder; and says
// what each engine can do with it.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/files/output_file.h"
#include "formats/architectures.h"
#include "formats/gguf/gguf.h"
#include "mrrope/ladder.h"
#include "mrrope/model.h"
#include "mrrope/plan.h"

namespace mrrope::exporting {

// ---- A GGUF file that stock llama.cpp, and programs built on it, run unchanged.
//
// The encoding depends on the architecture (formats/architectures.h) and on the plan:
//   factors      the divisors of theta go into rope_freqs.weight
//   lists        they go into rope_factors_long.weight and rope_factors_short.weight, both equal
//   relabelled   the file becomes one of architecture llama, with the rows of queries and keys in
//                llama's order, and takes factors
//   keys         llama.cpp has keys for this plan: linear, another base, YaRN
// The temperature is the key rope.scaling.attn_factor in all of them.

enum class GgufEncoding { unchanged, factors, lists, relabelled, keys };
const char* to_string(GgufEncoding encoding) noexcept;

struct GgufOptions {
  std::filesystem::path out;
  std::int64_t length = 0;  // tokens: the new context_length
  bool native = false;      // keys where the plan has them, even if factors would work
};

// What will be written. Refers to the parts of the Gguf it was made from.
struct GgufExport {
  GgufEncoding encoding = GgufEncoding::unchanged;
  std::string architecture;          // of the file to be written
  GgufFileOut file;                  // one, also of a split model
  std::vector<float> divisors;       // as written; empty where keys express the plan
  std::optional<float> attn_factor;  // rope.scaling.attn_factor as written
};

// Only the encoding, for advice: throws as plan_gguf_export().
GgufEncoding gguf_encoding(const Gguf& gguf, const Model& model, const Plan& plan,
                           const GgufOptions& options);

// Computes and checks everything; writes nothing. The Gguf describes the model, and the plan is for
// its geometry. Throws Error: unsupported with the reason where no exact encoding exists; usage;
// corrupt.
GgufExport plan_gguf_export(const Gguf& gguf, const Model& model, const Plan& plan,
                            const GgufOptions& options);

// Verifies a file that has no final name yet; throws to reject it. `staged` is the export with the
// path where the file is now.
using GgufVerify = std::function<void(Staging& staging, const GgufExport& staged)>;

// Writes the file next to its final place, verifies it, and only then publishes it. Throws Error:
// usage (the name is taken and `replace` is false, or it is an input), failed, and whatever
// `progress` and `verify` throw.
void write_export(const GgufExport& exported, bool replace, const BytesWritten& progress,
                  const GgufVerify& verify = {});

// A GGUF of an architecture whose graph is llama's, as one of architecture llama.
// Throws Error (unsupported) that names a key or tensor that llama would read differently or not at
// all, and Error (corrupt) where the rows of queries or keys are not whole heads.
void check_relabel(const Gguf& gguf, const Model& model, const Architecture& from);

// The tensor under llama's name, its rows in llama's order.
GgufTensorOut relabelled(GgufTensorOut tensor, const Model& model, const Architecture& from);

// ---- A Hugging Face folder that transformers, vLLM and SGLang run unchanged: a new config.json
// with the old weights and tokenizer.
//
// The form is rope_type longrope with two equal lists, which all three read. transformers takes the
// temperature from attention_factor, vLLM and SGLang from short_mscale and long_mscale. The
// original window is stated only inside rope_parameters: outside, vLLM would take it for the
// longest length.

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
  // Dialect mrrope alone: a plan for each length, of which vLLM gives every request one. Empty: the
  // plan.
  std::vector<Rung> rungs = {};
  std::optional<NearPart> near = {};  // of a far ladder with one factor for all pairs
};

// The plan's divisors of the bare theta, and its temperature, both including what the model was
// trained with.
std::vector<double> total_factors(const Plan& plan);
double total_attention_scale(const Plan& plan);

// rope_parameters for a context of `length` tokens, without keys that are specific to one model.
// `original` is the window it declares.
nlohmann::ordered_json longrope_parameters(const Plan& plan, std::int64_t length,
                                           std::int64_t original);

// config.json with the plan in it; all other keys stay. Throws Error (unsupported) with the reason
// if this model keeps its rotation in keys where readers would not find the plan.
nlohmann::ordered_json extended_config(const nlohmann::ordered_json& config, const Model& model,
                                       const Plan& plan, const HfOptions& options);

// How readers of the folder will deviate from the plan, in words; empty if they will not.
std::string hf_caveat(const Model& model, Dialect dialect);

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

// ---- What each engine can do with a plan on a model, and what to type.

enum class Advice {
  as_is,       // with the existing files and the given command
  needs_file,  // after mrrope export
  cannot,
};
const char* to_string(Advice advice) noexcept;

struct EngineAdvice {
  std::string engine;
  Advice verdict = Advice::cannot;
  std::string why = {};                    // for needs_file and cannot
  std::vector<std::string> commands = {};  // one per line, ready for a shell
};

struct EngineQuestion {
  const Model& model;
  const Gguf* gguf = nullptr;  // null unless the model is a GGUF file
  const Plan& plan;
  std::int64_t length = 0;
  std::string how;  // the flags that produce the plan: "--method pro --ctx 128k"
};

// llama.cpp, ollama, transformers, vLLM, SGLang, in this order. Commands name files as `export`
// would write them; those for transformers, vLLM and SGLang contain all numbers and need no export.
std::vector<EngineAdvice> engine_advice(const EngineQuestion& question);
nlohmann::ordered_json to_json(const std::vector<EngineAdvice>& advice);

}  // namespace mrrope::exporting
