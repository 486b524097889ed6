// SPDX-License-Identifier: Apache-2.0
// Writes a plan into a GGUF file that stock llama.cpp, and programs built on it, run unchanged.
//
// The encoding depends on the architecture (formats/architectures.h) and on the plan:
//   factors      the divisors of theta go into rope_freqs.weight
//   lists        they go into rope_factors_long.weight and rope_factors_short.weight, both equal
//   relabelled   the file becomes one of architecture llama, with the rows of queries and keys in
//                llama's order, and takes factors
//   keys         llama.cpp has keys for this plan: linear, another base, YaRN
//   approximate  the nearest YaRN; only on request
// The temperature is the key rope.scaling.attn_factor in all of them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/files/output_file.h"
#include "formats/architectures.h"
#include "formats/gguf/gguf.h"
#include "mrrope/model.h"
#include "mrrope/plan.h"

namespace mrrope::exporting {

// The YaRN nearest to a plan, in keys that stock llama.cpp reads from any GGUF: a factor and an
// original length. It reads the betas only for a few architectures and uses 32 and 1 for the
// others, so the ramp has a fixed width and can only be moved. (yarn_fit.cpp)
struct YarnFit {
  double scale = 1;                  // rope.scaling.factor
  std::int64_t original_length = 0;  // rope.scaling.original_context_length
  // The same ramp, in turns within the model's own window.
  double beta_fast = 32;
  double beta_slow = 1;
  // |angle under the fit / angle under the plan - 1|, over all pairs.
  double largest_error = 0;
  double mean_error = 0;
  int worst_pair = 0;
};

// The scale and original length with the smallest largest error. The plan must start from plain
// RoPE (no trained factors).
YarnFit fit_yarn(const Plan& plan);

// Whether the plan leaves the model unchanged.
bool is_identity(const Plan& plan);

enum class GgufEncoding { unchanged, factors, lists, relabelled, keys, approximate };
const char* to_string(GgufEncoding encoding) noexcept;

struct GgufOptions {
  std::filesystem::path out;
  std::int64_t length = 0;   // tokens: the new context_length
  bool split = false;        // in parts like the input, named OUT-00001-of-0000N.gguf
  bool approximate = false;  // allow the nearest YaRN where no exact encoding exists
  bool native = false;       // keys where the plan has them, even if factors would work
};

// What will be written. Refers to the parts of the Gguf it was made from.
struct GgufExport {
  GgufEncoding encoding = GgufEncoding::unchanged;
  std::string architecture;          // of the file to be written
  std::vector<GgufFileOut> files;    // the first is the one to open
  std::vector<float> divisors;       // as written; empty where keys express the plan
  std::optional<float> attn_factor;  // rope.scaling.attn_factor as written
  std::optional<YarnFit> fit;        // approximate only
  double temperature_error = 0;      // approximate only: |written / wanted - 1|
};

// Only the encoding, for advice: throws as plan_gguf_export().
GgufEncoding gguf_encoding(const Gguf& gguf, const Model& model, const Plan& plan,
                           const GgufOptions& options);

// Computes and checks everything; writes nothing. The Gguf describes the model, and the plan is for
// its geometry. Throws Error: unsupported with the reason where no allowed encoding exists; usage;
// corrupt.
GgufExport plan_gguf_export(const Gguf& gguf, const Model& model, const Plan& plan,
                            const GgufOptions& options);

// Verifies files that have no final name yet; throws to reject them. `staged` is the export with
// the paths where the files are now.
using GgufVerify = std::function<void(Staging& staging, const GgufExport& staged)>;

// Writes the files next to their final places, verifies them, and only then publishes them: all or
// none. Throws Error: usage (a name is taken and `replace` is false, or it is an input), failed,
// and whatever `progress` and `verify` throw.
void write_export(const GgufExport& exported, bool replace, const BytesWritten& progress,
                  const GgufVerify& verify = {});

// A GGUF of an architecture whose graph is llama's, as one of architecture llama.
// Throws Error (unsupported) that names a key or tensor that llama would read differently or not at
// all, and Error (corrupt) where the rows of queries or keys are not whole heads.
void check_relabel(const Gguf& gguf, const Model& model, const Architecture& from);

// The tensor under llama's name, its rows in llama's order.
GgufTensorOut relabelled(GgufTensorOut tensor, const Model& model, const Architecture& from);

}  // namespace mrrope::exporting
