// SPDX-License-Identifier: Apache-2.0
// The rows of results.json for other tools. A row is {task, method, plan, scale, length, depth?,
// metric, value, stderr, n} for every task.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "eval/results/result_table.h"

namespace mrrope::eval {

// results.json: the rows, comparisons, verdicts, and what else the task has.
nlohmann::ordered_json to_json(const ResultTable& table);

// The rows of a results.json whose task this build does not know. What is missing there is empty
// or NaN. Throws Error (corrupt) where it has no rows.
ResultTable table_from_json(const nlohmann::ordered_json& results);

// One line per row below a header line; empty fields where there is no depth or nothing was
// measured. Quoted as in RFC 4180, lines end in a line feed.
std::string results_csv(const ResultTable& table);

// The schema of lm-evaluation-harness 0.4, which its tables are made from.
// A method at a length (and depth) is one task there, such as "ppl/pro/8192" and
// "needle/pro/8192/depth_50", with "perplexity,none" and "perplexity_stderr,none"; "ppl/pro" groups
// them. A standard error that is not known is "N/A", as there; a value that was not measured is
// null. run: run.json. Throws Error (corrupt).
nlohmann::ordered_json lm_eval_results(const nlohmann::ordered_json& run, const ResultTable& table);

}  // namespace mrrope::eval
