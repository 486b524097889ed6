// SPDX-License-Identifier: Apache-2.0
// The results of a needle run, made from run.json and journal lines alone. Answers are graded here,
// so a journal can be graded again.
#pragma once

#include "eval/results/result_table.h"

namespace mrrope::eval {

// The task's name in run.json, journals and results.
constexpr const char* kNeedle = "needle";
constexpr const char* kContains = "contains";
constexpr const char* kRecall = "rouge1_recall";

// Metrics, from 0 to 1: rouge1_recall of the answer, rouge1_recall_stemmed (words of more than
// three letters by their stems; only for answers with words) and contains (exactly). Units are
// depths and needles; rows over all depths have no depth. Lines may come in any order: the outcome
// is the same to the last bit. Throws Error (corrupt) on a line that does not belong to the run.
ResultTable needle_results(const nlohmann::ordered_json& run,
                           const std::vector<nlohmann::ordered_json>& units);

// A unit's place: sample, method, and behind an endpoint the cell.
PlaceOf needle_places(const nlohmann::ordered_json& run);

Task needle_task();

}  // namespace mrrope::eval
