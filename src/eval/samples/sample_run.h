// SPDX-License-Identifier: Apache-2.0
// Runs the samples of a benchmark under every method. It needs an engine that appends, truncates
// and generates; only letters (sample.h) need logits. Answers are greedy.
//
// The unit of work is a group of consecutive samples of one set. Inside a unit samples are computed
// in the order of their tokens, and what one has in common with the one before is kept: so every
// shared prefix is computed once. Under a ladder that is so where no rung lies between the end of
// the prefix and the end of the last answer: otherwise its keys were turned since.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/run/method_under_test.h"
#include "eval/run/runner.h"
#include "eval/samples/sample.h"
#include "eval/samples/sample_results.h"

namespace mrrope::eval {

struct SampleRunOptions {
  // Samples per unit: what a kill loses, and what can share a prefix. Part of the run's identity,
  // as is the batch: other batches round differently.
  std::size_t group = 10;
  // Tokens per call of the engine; Ctrl-C is checked between calls.
  std::int64_t batch = 2048;
  // false: every sample is computed alone. The answers are the same unless the top two logits
  // almost tie; for tests and cross-checks.
  bool share = true;
};

// What run_samples() checks first. Throws Error (usage).
void check_samples(const Target& target, const std::vector<MethodUnderTest>& methods,
                   const SampleSuite& suite, const SampleRunOptions& options);

// Runs the units that the folder's journal does not have yet, then writes results.json. Throws
// Error: usage, and what run_units() throws.
ResultTable run_samples(const Target& target, const std::vector<MethodUnderTest>& methods,
                        const SampleSuite& suite, const SampleRunOptions& options,
                        RunFolder& folder, Progress& progress);

}  // namespace mrrope::eval
