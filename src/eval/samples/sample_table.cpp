// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/text.h"
#include "base/text_table.h"
#include "eval/samples/sample_results.h"
#include "eval/tasks/needle/needle_results.h"
#include "eval/tasks/ruler/ruler.h"

namespace mrrope {

namespace {

constexpr double kSignificant = 0.05;

std::string percent(const Estimate& e) {
  if (e.n == 0) return "-";
  std::string text = fixed(100 * e.value, 1);
  if (std::isfinite(e.error)) text += " +-" + fixed(100 * e.error, 1);
  return text;
}

// "ruler/vt" in a run of ruler as "vt", and the row over all tasks as "mean".
std::string row_name(const SampleResults& results, const std::string& task) {
  if (task == results.task) return results.tasks.size() > 1 ? "mean" : task;
  const std::string start = results.task + "/";
  return task.compare(0, start.size(), start) == 0 ? task.substr(start.size()) : task;
}

std::string one_length(const SampleResults& results, std::int64_t length,
                       const std::string& metric) {
  std::vector<TextRow> rows = {{"task"}};
  for (const std::string& method : results.methods) rows[0].push_back(method);
  rows[0].push_back("n");
  for (const std::string& task : results.tasks) {
    TextRow row = {row_name(results, task)};
    std::size_t n = 0;
    for (const std::string& method : results.methods) {
      const SampleScore* s = results.find(task, method, length, metric);
      row.push_back(s != nullptr ? percent(s->score) : "-");
      if (s != nullptr) n = std::max(n, s->score.n);
    }
    row.push_back(cat(n));
    if (n > 0) rows.push_back(std::move(row));
  }
  return cat("\nAt ", length_text(length), " (", length, " tokens), ", metric, " in percent:\n",
             aligned(rows));
}

std::string ruler_table(const SampleResults& results) {
  std::vector<TextRow> rows = {{"method"}};
  for (const std::int64_t n : results.lengths) rows[0].push_back(length_text(n));
  rows[0].insert(rows[0].end(), {"avg", "wavg inc", "wavg dec", "effective"});
  for (const RulerSummary& r : results.ruler) {
    TextRow row = {r.method};
    for (const std::int64_t n : results.lengths) {
      const SampleScore* s = results.find(results.tasks.back(), r.method, n, "string_match");
      row.push_back(s != nullptr ? percent(s->score) : "-");
    }
    for (const double v : {r.average, r.weighted_increasing, r.weighted_decreasing}) {
      row.push_back(std::isfinite(v) ? fixed(100 * v, 1) : "-");
    }
    row.push_back(r.effective > 0 ? length_text(r.effective) : "none");
    rows.push_back(std::move(row));
  }
  return cat("\nMean over tasks by length (effective: the longest at ",
             fixed(100 * kRulerThreshold, 1), " or above):\n", aligned(rows));
}

std::string comparisons(const SampleResults& results) {
  std::vector<TextRow> rows;
  for (const SampleComparison& c : results.comparisons) {
    if (c.length != results.lengths.back() || c.difference.n < 2) continue;
    rows.push_back({"  " + c.a + " against " + c.b,
                    (c.difference.value < 0 ? "" : "+") + percent(c.difference) + " points",
                    "p " + (c.corrected_p < 0.0001 ? "< 0.0001" : fixed(c.corrected_p, 4)),
                    c.corrected_p < kSignificant ? "real" : "not shown"});
  }
  if (rows.empty()) return {};
  return cat("\nDifferences at ", length_text(results.lengths.back()),
             " (all samples, paired, t test, p by Holm):\n", aligned(rows));
}

std::string remarks(const SampleResults& results) {
  std::string text;
  const auto share = [](double part, double whole) { return fixed(100 * part / whole, 0); };
  if (results.truncated > 0) {
    text += cat("Cut in the middle to fit: ", results.truncated, " of ", results.prompts,
                " prompts.\n");
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
                " of each other; other hardware may answer otherwise.\n");
  }
  if (results.naive_tokens > 0) {
    text += cat("Shared beginnings: ", results.tokens, " tokens computed of ", results.naive_tokens,
                ", ",
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
  if (!results.ruler.empty()) text += ruler_table(results);
  return text + comparisons(results) + remarks(results);
}

}  // namespace mrrope
