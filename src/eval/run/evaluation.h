// SPDX-License-Identifier: Apache-2.0
// One evaluation from start to end: its folder, the units that are left, results.json, and the
// results in the format asked for.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/results/result_table.h"
#include "eval/run/progress.h"
#include "eval/run/run_folder.h"

namespace mrrope::eval {

struct EvaluationOptions {
  std::filesystem::path out{};  // folder of the run; empty: everything stays in memory
  RunInfo info{};
  std::string format = "text";  // text, json, csv or lm-eval; the last two are also written to out
  bool shaded = false;          // text with coloured backgrounds
};

struct Evaluation {
  ResultTable table;
  nlohmann::ordered_json run;      // run.json
  std::string printed;             // the results in the format; of a shard what it has done
  std::vector<std::string> notes;  // what the user should know, files that were written
};

// run: one of run_perplexity(), run_needle() and run_samples(), with a task's own options. Throws
// Error as that does.
using RunTask = std::function<ResultTable(RunFolder& folder, Progress& progress)>;
Evaluation run_evaluation(const EvaluationOptions& options, Progress& progress, const RunTask& run);

}  // namespace mrrope::eval
