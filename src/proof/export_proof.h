// SPDX-License-Identifier: Apache-2.0
// Verifies an export by running it: what was written is opened by other code than the code that
// wrote it, before it gets its final name.
#pragma once

#include "engine/llama/local.h"
#include "export/export.h"

namespace mrrope::proof {

// The exported file in stock libllama, compared with the source under the injected plan.
// Differences are the largest |difference| of two logits, in standard deviations of the logits.
struct GgufProof {
  std::int64_t tokens = 0;    // of the prompt
  std::size_t positions = 0;  // at which all logits were compared
  double largest = 0;         // between the two
  double noise = 0;           // between the plan and one whose factors differ by a millionth
  double without_plan = 0;    // between the source with and without the plan
  // Whether a file without the plan would have been rejected. In a quantised model rounding can
  // grow larger than the effect of a plan.
  bool conclusive = false;
};

// Tokens of the prompt: min(1.25 x the old window, 4096); full: without the limit.
std::int64_t proof_length(const Model& source, std::int64_t length, bool full);

// How to run the models. Checks the memory, so call it before writing anything. Throws Error
// (out_of_memory).
engine::LocalOptions proof_options(const Model& source, std::int64_t tokens);

// Tokens that prove_gguf computes in all, for a progress display.
std::int64_t proof_work(const exporting::GgufExport& exported, std::int64_t tokens);

// Reads the file back with our own reader, then compares logits. `exported` has the path where the
// file is now. on_tokens: called with the tokens computed since the last call. Throws Error
// (goal_not_met) that names what differs.
GgufProof prove_gguf(const Model& source, const Plan& plan, const exporting::GgufExport& exported,
                     std::int64_t length, const engine::LocalOptions& options, std::int64_t tokens,
                     const std::function<void(std::int64_t)>& on_tokens = {});

// Inverse frequencies and attention factor of an exported folder as transformers computes them.
struct HuggingFaceProof {
  bool ran = false;  // false: `why` says what is missing
  std::string why;
  std::string version;     // of transformers
  double largest = 0;      // |theta of transformers / theta of the plan - 1|
  double temperature = 0;  // |factor of transformers / temperature of the plan - 1|
};
HuggingFaceProof prove_huggingface(const std::filesystem::path& folder, const Plan& plan);

}  // namespace mrrope::proof
