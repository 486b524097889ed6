// SPDX-License-Identifier: Apache-2.0
// Runs the samples of a benchmark under every method. Of an engine it needs tokens, append,
// truncate and generate; only letters (sample.h) need logits. Answers are greedy.
//
// The unit of work is a group of consecutive samples of one set. Inside a unit samples are computed
// in the order of their tokens, and what one has in common with the one before is kept: so every
// shared beginning is computed once. Not so under a ladder that grows: its keys stand on the rung
// of one length, and would have to be turned back and forth.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/run/method_under_test.h"
#include "eval/run/progress.h"
#include "eval/run/run_folder.h"
#include "eval/run/target.h"
#include "eval/samples/sample.h"
#include "eval/samples/sample_results.h"

namespace mrrope {

struct SampleRunOptions {
  // Samples per unit: what a kill loses, and what can share a beginning. Part of the run's
  // identity, as is the batch: other borders, other roundings.
  std::size_t group = 10;
  // Tokens handed to the engine at once, and the grain of Ctrl-C.
  std::int64_t batch = 2048;
  // false: every sample is computed alone. The answers are the same but where the top two logits
  // all but tie; for tests and for doubters.
  bool share = true;
  // A prompt is handed over in one piece, for an engine that reads it under the plan of its end.
  bool whole_prompts = false;
};

// What run_samples() asks first. Throws Error (usage).
void check_samples(const Target& target, const std::vector<MethodUnderTest>& methods,
                   const SampleSuite& suite, const SampleRunOptions& options);

// Runs what the folder's journal does not hold yet, then writes results.json. Throws Error: usage,
// interrupted (with the command to go on), and whatever the engine throws, with the place named.
SampleResults run_samples(const Target& target, const std::vector<MethodUnderTest>& methods,
                          const SampleSuite& suite, const SampleRunOptions& options,
                          RunFolder& folder, Progress& progress);

}  // namespace mrrope
