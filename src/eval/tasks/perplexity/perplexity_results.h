// SPDX-License-Identifier: Apache-2.0
// The results of a perplexity run, made from run.json and journal lines alone: no model, no texts.
#pragma once

#include "eval/results/result_table.h"

namespace mrrope::eval {

// The task's name in run.json, journals and results.
constexpr const char* kPerplexity = "ppl";
constexpr const char* kPerplexityMetric = "perplexity";

// Metrics: perplexity (the first N tokens), perplexity_last_half (tokens N/2 .. N-1),
// perplexity_band (from the next shorter length, or the start, to N-1), kl_divergence (from the
// unmodified model, at the longest length inside the window). Units are documents. Lines may come
// in any order: the outcome is the same to the last bit. Throws Error (corrupt) on a line that does
// not belong to the run.
ResultTable perplexity_results(const nlohmann::ordered_json& run,
                               const std::vector<nlohmann::ordered_json>& units);

// A unit's place: document, method (the unmodified model first), and 0, as journals have it.
PlaceOf perplexity_places(const nlohmann::ordered_json& run);

Task perplexity_task();

}  // namespace mrrope::eval
