// SPDX-License-Identifier: Apache-2.0
// Perplexity at every length from one pass per document: a causal model scores the first 512 tokens
// of a document the same way whether 32768 follow or none, so one pass at the longest length holds
// all shorter ones.
//
// The paper's protocol: the first N tokens of each document, with BOS where the model has one; N-1
// of them are scored; perplexity is exp of the mean over documents of the mean over tokens. A
// document with fewer than N tokens is not used at length N: it is named, never padded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/run/method_under_test.h"
#include "eval/run/runner.h"
#include "eval/tasks/perplexity/perplexity_results.h"
#include "eval/text/documents.h"
#include "model/timeline_model.h"

namespace mrrope::eval {

struct PerplexityOptions {
  std::vector<std::int64_t> lengths;  // tokens; sorted and made unique here

  // Tokens per call of the engine; progress and Ctrl-C are checked between calls. Part of the
  // run's identity: other batches round differently.
  std::int64_t batch = 2048;

  // Divergence from the untouched model: mean over this many positions of KL(untouched || method),
  // evenly spaced over the longest length inside the window: position k of K is
  // floor((2k + 1) * length / 2K). From full logits of both, in nats. 0: not measured.
  // Costs vocabulary * positions * 4 bytes. Needs an untouched model among the methods.
  int kl_positions = 64;

  // How the documents were chosen, for run.json: at random, and of at least so many tokens.
  bool random = false;
  std::int64_t min_tokens = 0;
};

// What run_perplexity() checks first. Throws Error (usage).
void check_perplexity(TimelineModel& model, const std::vector<MethodUnderTest>& methods,
                      PerplexityOptions options);

// Throws Error (usage) where the longest text, of so many tokens, is shorter than every length:
// there would be nothing to measure.
void check_reach(std::int64_t tokens, const std::vector<std::int64_t>& lengths);

// Runs the units (document and method) that the folder's journal does not have yet; for each
// document the untouched model comes first. Then writes results.json. Throws Error: usage (options,
// or a length beyond the context or a ladder) and what run_units() throws; NaN is a failure of the
// engine. A token of probability 0 is data: the unit is recorded with the lengths that end before
// it.
ResultTable run_perplexity(TimelineModel& model, const std::vector<MethodUnderTest>& methods,
                           const std::vector<Document>& documents, const PerplexityOptions& options,
                           RunFolder& folder, Progress& progress);

}  // namespace mrrope::eval
