// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/text.h"
#include "base/text_table.h"
#include "eval/tasks/perplexity/perplexity_results.h"

namespace mrrope::eval {

namespace {

using Row = TextRow;

// Three digits after the point where they mean something.
std::string short_number(double value) {
  if (value >= 10000) return significant(value, 3);
  return fixed(value, value < 10 ? 3 : value < 100 ? 2 : 1);
}

std::string cell_text(const Estimate& e) {
  if (e.n == 0) return "-";
  std::string text = short_number(e.value);
  if (std::isfinite(e.error)) text += " +-" + short_number(e.error);
  return text;
}

std::string percent_text(const Estimate& e) {
  std::string text = (e.value < 0 ? "" : "+") + fixed(e.value, std::abs(e.value) < 100 ? 1 : 0);
  if (std::isfinite(e.error)) text += " +-" + fixed(e.error, std::abs(e.value) < 100 ? 1 : 0);
  return text + " %";
}

std::string documents_text(std::size_t n) { return n == 1 ? "1 document" : cat(n, " documents"); }

std::string perplexity_table(const PerplexityResults& results, Estimate PerplexityCell::*what) {
  std::vector<Row> rows = {{"method"}};
  for (const std::int64_t n : results.lengths) rows[0].push_back(length_text(n));
  for (const PerplexityRow& row : results.rows) {
    Row cells = {row.method};
    for (const PerplexityCell& cell : row.cells) cells.push_back(cell_text(cell.*what));
    rows.push_back(std::move(cells));
  }
  return aligned(rows);
}

std::string verdict_line(const PerplexityResults& results, const PerplexityRow& row,
                         const Verdict& v) {
  std::string line = "  " + v.method + ": ";
  if (!v.judged) {
    line += "no verdict, " + v.reason;
  } else if (v.good_to == 0) {
    line += cat("not good beyond the window: ", v.reason);
  } else if (v.to_the_end) {
    line += cat("good to ", length_text(v.good_to), ", the longest measured");
  } else {
    line += cat("good to ", length_text(v.good_to), "; ", v.reason);
  }
  if (v.cost.mean_difference.n > 0 && !row.untouched) {
    line += cat("; costs ", percent_text(v.cost.percent()), " at ",
                length_text(results.reference_length));
    if (row.divergence.n > 0) line += cat(", KL ", significant(row.divergence.value, 3));
  }
  return line + "\n";
}

}  // namespace

std::string to_text(const PerplexityResults& results) {
  std::string text;
  if (results.stride > 0) {
    text += cat("Perplexity, sliding windows of N tokens by ", results.stride, ", ",
                documents_text(results.documents.size()), ":\n",
                perplexity_table(results, &PerplexityCell::perplexity));
  } else {
    text += cat("Perplexity of the first N tokens, ", documents_text(results.documents.size()),
                " (window ", length_text(results.window), "):\n",
                perplexity_table(results, &PerplexityCell::perplexity));
    if (results.lengths.size() > 1) {
      text += "\nBands, from the length before to N:\n" +
              perplexity_table(results, &PerplexityCell::band);
    }
  }
  text += comparison_text(results.comparisons, results.lengths.back(), "documents",
                          [](const PairedDifference& d) { return percent_text(d.percent()); });
  if (!results.verdicts.empty()) text += "\nVerdict:\n";
  for (std::size_t i = 0; i < results.verdicts.size(); ++i) {
    text += verdict_line(results, results.rows[i], results.verdicts[i]);
  }
  for (std::size_t l = 0; l < results.lengths.size(); ++l) {
    if (results.too_short[l].empty()) continue;
    text += cat("\nToo short for ", length_text(results.lengths[l]), ": ");
    for (std::size_t i = 0; i < results.too_short[l].size(); ++i) {
      text += (i == 0 ? "" : ", ") + results.too_short[l][i];
    }
  }
  if (!results.too_short.back().empty()) text += "\n";
  for (const std::string& failure : results.failures) text += "Failed: " + failure + "\n";
  return text;
}

}  // namespace mrrope::eval
