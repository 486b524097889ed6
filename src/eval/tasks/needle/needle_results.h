// SPDX-License-Identifier: Apache-2.0
// What a needle run found, made from run.json and journal lines alone. Answers are graded here, so
// a journal can be graded again.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/stats/statistics.h"

namespace mrrope {

// Below this difference of the top two logits, another order of additions may pick the other token:
// another batch size, another machine, or computing the prompt alone instead of sharing it.
constexpr double kTie = 0.01;

// Scores from 0 to 1, with the standard error over needles.
struct NeedleScore {
  Estimate rouge;     // ROUGE-1 recall of the answer
  Estimate contains;  // share of answers that hold it letter for letter
};

struct NeedleRow {
  std::string method;
  std::string plan;  // digest
  double scale = 1;
  std::vector<std::vector<NeedleScore>> cells;  // [length][depth]
  std::vector<NeedleScore> all;                 // [length]: over all depths
  std::vector<std::size_t> ties;                // [length]: answers with a gap below kTie
};

// Two methods on the same needles. In points of containment: 0.1 is ten needles of a hundred.
struct NeedleComparison {
  std::int64_t length = 0;
  std::string a, b;
  Estimate difference;
  double corrected_p = 1;  // paired t test, Holm over all pairs at this length
};

struct NeedleResults {
  std::vector<std::int64_t> lengths;
  std::vector<double> depths;
  std::int64_t window = 0;  // what the model was trained for
  std::size_t samples = 0;
  std::size_t haystacks = 0;
  std::string form;
  std::vector<NeedleRow> rows;
  std::vector<NeedleComparison> comparisons;
  std::size_t unsnapped = 0;  // needles that no end of a sentence was near, over one method
  std::size_t failed = 0;     // prompts an endpoint gave no answer to
  std::int64_t tokens = 0;    // computed by all units, answers not counted
  std::int64_t naive_tokens = 0;
};

// Lines may come in any order: the outcome is the same to the last bit. Throws Error (corrupt) on
// a line that does not belong to the run.
NeedleResults needle_results(const nlohmann::ordered_json& run,
                             const std::vector<nlohmann::ordered_json>& units);

// results.json: the rows {task, method, plan, scale, length, depth, metric, value, stderr, n} with
// metric rouge1_recall and contains, values from 0 to 1; those over all depths have no depth. Then
// comparisons, ties, unsnapped, tokens.
nlohmann::ordered_json to_json(const NeedleResults& results);

// For a terminal: a heat map per method (percent of ROUGE-1 recall), then the means per length.
// shaded: cells with a coloured background, for terminals that know 256 colours.
std::string to_text(const NeedleResults& results, bool shaded = false);

}  // namespace mrrope
