// SPDX-License-Identifier: Apache-2.0
// The proof of an export: its own output, opened by another path than the one that wrote it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/llama/local.h"
#include "export/gguf_export.h"
#include "mrrope/model.h"

namespace mrrope::cli {

// What stock libllama made of the exported file, beside the source under the injected plan.
struct GgufProof {
  std::int64_t tokens = 0;    // of the prompt
  std::size_t positions = 0;  // at which all logits were compared
  double largest = 0;         // |difference| of two logits, in standard deviations of the logits
  double noise = 0;           // the same between the plan and one a millionth beside it
  double without_plan = 0;    // the same between the source with and without the plan
};

// Tokens of the prompt: min(1.25 x the old window, 4096); full: without the limit.
std::int64_t proof_length(const Model& source, std::int64_t length, bool full);

// Memory and options are checked before anything is written. Throws Error (out_of_memory).
LocalOptions proof_options(const Model& source, std::int64_t tokens);

// Reads the file back with our own reader, then compares logits. Throws Error (goal_not_met) that
// names what differs.
GgufProof prove_gguf(const Model& source, const Plan& plan, const GgufExport& exported,
                     std::int64_t length, const LocalOptions& options, std::int64_t tokens);

// Inverse frequencies and attention factor of an exported folder as transformers computes them.
struct HuggingFaceProof {
  bool ran = false;  // false: `why` says what is missing
  std::string why;
  std::string version;     // of transformers
  double largest = 0;      // |theta of transformers / theta of the plan - 1|
  double temperature = 0;  // |factor of transformers / temperature of the plan - 1|
};
HuggingFaceProof prove_huggingface(const std::filesystem::path& folder, const Plan& plan);

}  // namespace mrrope::cli
