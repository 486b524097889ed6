// SPDX-License-Identifier: Apache-2.0
// The results of a perplexity run, made from run.json and journal lines alone: no model, no texts.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/run/method_under_test.h"
#include "eval/run/task.h"
#include "eval/stats/comparison.h"
#include "eval/stats/verdict.h"

namespace mrrope::eval {

// The task's name in run.json, journals and results.
constexpr const char* kPerplexity = "ppl";

// One method at one length. Losses are natural logarithms per token, one per document in the order
// of the run, NaN where the document is not used.
struct PerplexityCell {
  std::vector<double> loss;
  std::vector<double> band_loss;
  Estimate perplexity;  // the first N tokens
  Estimate last_half;   // tokens N/2 .. N-1
  Estimate band;        // tokens from the next shorter length (or the start) .. N-1
};

struct PerplexityRow : MethodRow {
  std::vector<PerplexityCell> cells;  // one per length
  Estimate divergence;                // KL from the untouched model, at reference_length
  bool failed = false;                // under it a token had probability 0
};

struct PerplexityResults {
  std::vector<std::int64_t> lengths;
  std::int64_t window = 0;            // what the model was trained for
  std::int64_t reference_length = 0;  // the longest length inside the window; 0: none is
  std::int64_t stride = 0;            // above 0: the sliding window was used
  std::vector<std::string> documents;
  std::vector<std::vector<std::string>> too_short;  // ids, per length
  std::vector<std::string> failures;                // one line per unit that met NaN
  std::vector<PerplexityRow> rows;
  std::vector<Comparison> comparisons;  // of the log-perplexities, over documents
  std::vector<Verdict> verdicts;        // one per row; empty with a sliding window
};

// Lines may come in any order: the outcome is the same to the last bit. Throws Error (corrupt) on
// a line that does not belong to the run.
PerplexityResults perplexity_results(const nlohmann::ordered_json& run,
                                     const std::vector<nlohmann::ordered_json>& units);

// results.json: the rows {task, method, plan, scale, length, metric, value, stderr, n} with metric
// perplexity, perplexity_last_half, perplexity_band, kl_divergence (perplexity_sliding alone with
// a sliding window); then comparisons, verdicts, too_short, failures.
nlohmann::ordered_json to_json(const PerplexityResults& results);

// For a terminal: the table, the comparisons at the longest length, the verdicts, and what was not
// used. Plain ASCII, no colours.
std::string to_text(const PerplexityResults& results);

// A unit's place: document, method (the untouched model first), window.
PlaceOf perplexity_places(const nlohmann::ordered_json& run);

// The row of the table of tasks.
TaskResults task_results(const PerplexityResults& results);
Task perplexity_task();

}  // namespace mrrope::eval
