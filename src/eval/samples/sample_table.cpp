// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/text_table.h"
#include "eval/samples/sample_results.h"

namespace mrrope::eval {

namespace {

// "ruler/vt" in a run of ruler as "vt", and the row over all tasks as "mean of 13".
std::string row_name(const SampleResults& results, const std::string& task) {
  if (results.own_tasks > 1 && task == results.mean_row) {
    return results.mean_of < results.own_tasks
               ? cat("mean of ", results.mean_of, " of ", results.own_tasks)
               : cat("mean of ", results.mean_of);
  }
  const std::string start = results.task + "/";
  return task.compare(0, start.size(), start) == 0 ? task.substr(start.size()) : task;
}

std::string one_length(const SampleResults& results, std::int64_t length,
                       const std::string& metric) {
  std::vector<TextRow> rows = {{"task"}};
  for (const MethodRow& method : results.rows) rows[0].push_back(method.method);
  rows[0].push_back("n");
  for (const std::string& task : results.tasks) {
    TextRow row = {row_name(results, task)};
    std::size_t n = 0;
    for (const MethodRow& method : results.rows) {
      const SampleScore* s = results.find(task, method.method, length, metric);
      row.push_back(s != nullptr ? percent_score(s->score) : "-");
      if (s != nullptr) n = std::max(n, s->score.n);
    }
    row.push_back(cat(n));
    if (n > 0) rows.push_back(std::move(row));
  }
  return cat("\nAt ", length_text(length), " (", length, " tokens), ", metric, " in percent:\n",
             aligned(rows));
}

std::string remarks(const SampleResults& results) {
  std::string text;
  const auto share = [](double part, double whole) { return fixed(100 * part / whole, 0); };
  if (results.truncated > 0) {
    text += cat("Cut in the middle to fit: ", results.truncated, " of ", results.prompts,
                " prompts.\n");
  }
  if (results.questions > 1) {
    text += cat("Questions about each text: ", results.questions,
                ". n counts texts, and errors are over texts.\n");
  }
  if (results.empty > 0) {
    text += cat("Empty answers: ", results.empty, " of ", results.answers, ".\n");
  }
  if (results.unanswered > 0) {
    text += cat("Answers that name no choice, counted as wrong: ", results.unanswered, " of ",
                results.answers, ".\n");
  }
  if (results.ties > 0) {
    text += cat("Near ties: in ", results.ties, " of ", results.answers,
                " answers the top two logits came within ", kTie,
                " of each other; other hardware may give another answer.\n");
  }
  if (results.naive_tokens > 0) {
    text +=
        cat("Shared prefixes: ", results.tokens, " tokens computed of ", results.naive_tokens, ", ",
            share(double(results.naive_tokens - results.tokens), double(results.naive_tokens)),
            " % saved.\n");
  }
  return text.empty() ? text : "\n" + text;
}

}  // namespace

std::string to_text(const SampleResults& results) {
  std::string text =
      cat(results.task, ", ", results.source, " (window ", length_text(results.window), ")\n");
  for (const std::int64_t length : results.lengths) {
    for (const std::string& metric : results.metrics) text += one_length(results, length, metric);
  }
  text += results.summary_text;
  text += comparison_text(results.comparisons, results.lengths.back(),
                          results.questions > 1 ? "texts" : "samples", signed_points);
  if (const std::string hopeless = hopeless_text(results); !hopeless.empty()) {
    text += cat("\n", hopeless, "\n");
  }
  return text + remarks(results);
}

std::string hopeless_text(const SampleResults& results) {
  const auto untouched =
      std::find_if(results.rows.begin(), results.rows.end(),
                   [](const MethodRow& row) { return row.untouched || row.grows; });
  if (untouched == results.rows.end()) return {};
  std::string names;
  for (std::size_t t = 0; t < results.own_tasks; ++t) {
    bool measured = false;
    bool zero = true;
    for (const std::int64_t length : results.lengths) {
      const SampleScore* s =
          results.find(results.tasks[t], untouched->method, length, results.metrics.front());
      if (length > results.window || s == nullptr || s->score.n == 0) continue;
      measured = true;
      zero &= s->score.value == 0;
    }
    if (measured && zero) {
      names += cat(names.empty() ? "" : ", ", row_name(results, results.tasks[t]));
    }
  }
  if (names.empty()) return {};
  return cat("This model gets 0 % inside its window of ", length_text(results.window),
             " in: ", names, ". Nothing can be learned beyond it from these tasks.");
}

}  // namespace mrrope::eval
