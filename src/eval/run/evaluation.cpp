// SPDX-License-Identifier: Apache-2.0
#include "eval/run/evaluation.h"

#include "base/files/output_file.h"
#include "base/text.h"
#include "eval/results/result_formats.h"
#include "eval/results/result_text.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

std::string shard_text(const EvaluationOptions& options, const ordered_json& shard) {
  if (options.format == "json") return ordered_json{{"shard", shard}}.dump() + "\n";
  const std::size_t count = options.info.shard.count;
  return cat("shard ", to_text(options.info.shard), ": ", shard.at("units"), " units in ",
             options.out.string(), "; when all ", count,
             " are done, run: mrrope report DIR... -o WHOLE\n");
}

}  // namespace

Evaluation run_evaluation(const EvaluationOptions& options, Progress& progress,
                          const RunTask& run) {
  RunFolder folder = options.out.empty() ? RunFolder() : RunFolder(options.out, options.info);
  Evaluation done;
  done.table = run(folder, progress);
  done.run = folder.run();
  done.notes = folder.notes();
  if (options.info.shard.part()) {
    done.printed = shard_text(options, done.run.at("shard"));
    return done;
  }
  const auto wrote = [&](const char* file) {
    done.notes.push_back(cat("wrote ", (options.out / file).string()));
  };
  if (!options.out.empty()) wrote("results.json");
  const char* file = nullptr;
  if (options.format == "csv") {
    file = "results.csv";
    done.printed = results_csv(done.table);
  } else if (options.format == "lm-eval") {
    file = "results_lm-eval.json";
    done.printed = results_text(lm_eval_results(done.run, done.table));
  } else {
    done.printed = options.format == "json" ? results_text(to_json(done.table))
                                            : to_text(done.table, options.shaded);
  }
  if (file != nullptr && !options.out.empty()) {
    write_atomically(options.out / file, done.printed);
    wrote(file);
  }
  return done;
}

}  // namespace mrrope::eval
