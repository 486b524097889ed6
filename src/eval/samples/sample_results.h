// SPDX-License-Identifier: Apache-2.0
// The results of a run of samples, made from run.json and journal lines alone. Answers are graded
// here, so a journal can be graded again.
#pragma once

#include <string>
#include <vector>

#include "eval/results/result_table.h"
#include "eval/samples/sample.h"

namespace mrrope::eval {

// Rows are tasks ("ruler/vt"), parts of them that samples are tagged with ("longbench-v2/SD"), and
// the mean over all tasks: named like the benchmark, or with "(mean of 5 of 6 tasks)" after it
// where a task has no sample in this run, for such a mean is another figure. Scores run from 0 to
// 1; their errors are over samples, or over texts where each has several questions, and for a mean
// follow from those of its tasks. Units are sets and samples. Lines may come in any order: the
// outcome is the same to the last bit. Throws Error (corrupt) on a line that does not belong to the
// run.
ResultTable sample_results(const SampleRules& rules, const nlohmann::ordered_json& run,
                           const std::vector<nlohmann::ordered_json>& units);

// A unit's place: set, group, method.
PlaceOf sample_places(const nlohmann::ordered_json& run);

// A benchmark's row of the table of tasks. The rules must outlive it.
Task sample_task(const std::string& name, const SampleRules& rules);

}  // namespace mrrope::eval
