// SPDX-License-Identifier: Apache-2.0
// Perplexity at every length from one pass per document: a causal model scores the first 512 tokens
// of a document the same way whether 32768 follow or none, so one pass at the longest length holds
// all shorter ones.
//
// The paper's protocol: the first N tokens of each document, with BOS where the model has one; N-1
// of them are scored; perplexity is exp of the mean over documents of the mean over tokens. A
// document with fewer than N tokens is not used at length N: it is named, never padded.
#pragma once

#include "eval/run/runner.h"
#include "eval/text/documents.h"

namespace mrrope::eval {

// The task's name in run.json, journals and results.
constexpr const char* kPerplexity = "ppl";
constexpr const char* kPerplexityMetric = "perplexity";
constexpr const char* kPerplexityBand = "perplexity_band";

struct PerplexityOptions : EngineUse {
  std::vector<std::int64_t> lengths;  // tokens; sorted and made unique here

  // Divergence from the untouched model: mean over this many positions of KL(untouched || method),
  // evenly spaced over the longest length inside the window: position k of K is
  // floor((2k + 1) * length / 2K). From full logits of both, in nats. 0: not measured.
  // Costs vocabulary * positions * 4 bytes. Needs an untouched model among the methods.
  int kl_positions = 64;

  // How the documents were chosen, for run.json: at random, and of at least so many tokens.
  bool random = false;
  std::int64_t min_tokens = 0;
};

// Throws Error (usage) where the longest text, of so many tokens, is shorter than every length:
// there would be nothing to measure.
void check_reach(std::int64_t tokens, const std::vector<std::int64_t>& lengths);

// Runs the units (document and method) that the folder's journal does not have yet; for each
// document the untouched model comes first. Then writes results.json. Throws Error: usage, and what
// run_job() throws; NaN is a failure of the engine. A token of probability 0 is data: the unit is
// recorded with the lengths that end before it.
ResultTable run_perplexity(TimelineModel& model, const std::vector<MethodUnderTest>& methods,
                           const std::vector<Document>& documents, const PerplexityOptions& options,
                           RunFolder& folder, Progress& progress);

// How far a method of the table is good (perplexity.cpp has the rule). failed: a token had
// probability 0, so missing bands are no lack of data.
Verdict judge(const ResultTable& table, const MethodRow& method, bool failed);

// Metrics: perplexity (the first N tokens), perplexity_last_half (tokens N/2 .. N-1),
// perplexity_band (from the next shorter length, or the start, to N-1), kl_divergence (from the
// unmodified model, at the longest length inside the window). Units are documents.
Task perplexity_task();

}  // namespace mrrope::eval
