// SPDX-License-Identifier: Apache-2.0
// The results of a needle run, made from run.json and journal lines alone. Answers are graded here,
// so a journal can be graded again.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/run/method_under_test.h"
#include "eval/run/task.h"
#include "eval/stats/comparison.h"
#include "eval/stats/near_tie.h"

namespace mrrope::eval {

// The task's name in run.json, journals and results.
constexpr const char* kNeedle = "needle";

// Scores from 0 to 1, with the standard error over needles.
struct NeedleScore {
  Estimate rouge;     // ROUGE-1 recall of the answer
  Estimate stemmed;   // the same, words of more than three letters by their stems
  Estimate contains;  // share of answers that contain it exactly
};

struct NeedleRow : MethodRow {
  std::vector<std::vector<NeedleScore>> cells;  // [length][depth]
  std::vector<NeedleScore> all;                 // [length]: over all depths
  std::vector<std::size_t> ties;                // [length]: answers with a gap below kTie
};

struct NeedleResults {
  std::vector<std::int64_t> lengths;
  std::vector<double> depths;
  std::int64_t window = 0;  // what the model was trained for
  std::size_t samples = 0;
  std::size_t haystacks = 0;
  std::string form;
  bool by_recall = false;  // form kamradt: methods are compared by recall, not by what is contained
  bool stemmed = false;    // the answer has words, so stems may differ from them
  bool served = false;     // behind an endpoint, where a unit is one cell
  std::vector<NeedleRow> rows;
  std::vector<Comparison> comparisons;  // of the shares that are contained, over needles
  std::size_t unsnapped = 0;            // needles inserted mid-sentence, for one method
  std::size_t failed = 0;               // prompts that an endpoint did not answer
  std::int64_t tokens = 0;              // computed by all units, answers not counted
  std::int64_t naive_tokens = 0;
  std::vector<RecordedAnswer> answers;  // in the order of the journal
};

// Lines may come in any order: the outcome is the same to the last bit. Throws Error (corrupt) on
// a line that does not belong to the run.
NeedleResults needle_results(const nlohmann::ordered_json& run,
                             const std::vector<nlohmann::ordered_json>& units);

// results.json: the rows {task, method, plan, scale, length, depth, metric, value, stderr, n} with
// metric rouge1_recall, rouge1_recall_stemmed (answers with words) and contains, values from 0 to
// 1; those over all depths have no depth. Then
// comparisons, ties, unsnapped, tokens.
nlohmann::ordered_json to_json(const NeedleResults& results);

// For a terminal: a heat map per method (percent of ROUGE-1 recall), then the means per length.
// shaded: cells with a coloured background, for terminals that know 256 colours.
std::string to_text(const NeedleResults& results, bool shaded = false);

// Empty, or a sentence that says that the untouched model finds no needle inside its window, so
// that nothing can be learned beyond it.
std::string hopeless_text(const NeedleResults& results);

// A unit's place: sample, method, and behind an endpoint the cell.
PlaceOf needle_places(const nlohmann::ordered_json& run);

// The row of the table of tasks.
TaskResults task_results(const NeedleResults& results);
Task needle_task();

}  // namespace mrrope::eval
