// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/text_table.h"
#include "eval/tasks/needle/needle_results.h"

namespace mrrope::eval {

namespace {

std::string percent(double share) { return fixed(100 * share, 0); }

// From red (0) through yellow to green (1), in the 6 x 6 x 6 cube of the 256 colours; black on it.
std::string shade(double share, const std::string& text) {
  const int step = int(std::lround(10 * share));  // 0 .. 10
  const int red = std::min(5, 10 - step);
  const int green = std::min(5, step);
  return cat("\x1b[30;48;5;", 16 + 36 * red + 6 * green, "m", text, "\x1b[0m");
}

// Rows are depths, columns lengths.
std::string heat_map(const NeedleResults& results, const NeedleRow& row, bool shaded) {
  constexpr std::size_t kFirst = 7;
  std::size_t width = 5;
  for (const std::int64_t n : results.lengths) width = std::max(width, length_text(n).size() + 2);
  const auto right = [](const std::string& text, std::size_t to) {
    return std::string(to > text.size() ? to - text.size() : 0, ' ') + text;
  };
  std::string text = right("depth", kFirst);
  for (const std::int64_t n : results.lengths) text += right(length_text(n), width);
  text += "\n";
  for (std::size_t d = 0; d < results.depths.size(); ++d) {
    text += right(significant(results.depths[d], 3) + " %", kFirst);
    for (std::size_t l = 0; l < results.lengths.size(); ++l) {
      const Estimate& e = row.cells[l][d].rouge;
      const std::string cell = right(e.n == 0 ? "-" : percent(e.value), width);
      text += shaded && e.n > 0 ? shade(e.value, cell) : cell;
    }
    text += "\n";
  }
  return text;
}

std::string means(const NeedleResults& results, Estimate NeedleScore::*what) {
  std::vector<TextRow> rows = {{"length"}};
  for (const NeedleRow& row : results.rows) rows[0].push_back(row.method);
  for (std::size_t l = 0; l < results.lengths.size(); ++l) {
    rows.push_back({length_text(results.lengths[l])});
    for (const NeedleRow& row : results.rows)
      rows.back().push_back(percent_score(row.all[l].*what));
  }
  return aligned(rows);
}

bool scores_differ(const NeedleResults& results) {
  for (const NeedleRow& row : results.rows) {
    for (const NeedleScore& score : row.all) {
      if (score.rouge.value != score.contains.value) return true;
    }
  }
  return false;
}

std::string remarks(const NeedleResults& results) {
  std::size_t ties = 0;
  std::size_t answers = 0;
  for (const NeedleRow& row : results.rows) {
    for (std::size_t l = 0; l < results.lengths.size(); ++l) {
      ties += row.ties[l];
      answers += row.all[l].rouge.n;
    }
  }
  std::string text;
  if (ties > 0) {
    text += cat("Near ties: in ", ties, " of ", answers, " answers the top two logits came within ",
                kTie, " of each other; other hardware may give another answer.\n");
  }
  if (results.unsnapped > 0) {
    text += cat(results.unsnapped, " needles were inserted mid-sentence.\n");
  }
  if (results.naive_tokens > 0) {
    text += cat("Shared prefixes: ", results.tokens, " tokens computed of ", results.naive_tokens,
                " (", percent(double(results.tokens) / double(results.naive_tokens)), " %).\n");
  }
  return text.empty() ? text : "\n" + text;
}

}  // namespace

std::string to_text(const NeedleResults& results, bool shaded) {
  std::string text = cat("Needles, form ", results.form, ": ", results.depths.size(), " depths x ",
                         results.samples, results.samples == 1 ? " needle" : " needles", ", ",
                         results.haystacks, results.haystacks == 1 ? " haystack" : " haystacks",
                         " (window ", length_text(results.window), ")\n");
  for (const NeedleRow& row : results.rows) {
    // The plan of a model behind an endpoint is not known.
    const std::string scale = std::isnan(row.scale) ? "" : cat(", scale ", row.scale);
    text += cat("\n", row.method, scale, ": ROUGE-1 recall in percent\n",
                heat_map(results, row, shaded));
  }
  text += "\nROUGE-1 recall in percent, all depths:\n" + means(results, &NeedleScore::rouge);
  if (results.stemmed) {
    text += "\nROUGE-1 recall by stems, in percent:\n" + means(results, &NeedleScore::stemmed);
  }
  if (scores_differ(results)) {
    text += "\nAnswer contained, in percent:\n" + means(results, &NeedleScore::contains);
  } else {
    text += "(Answer contained: the same numbers.)\n";
  }
  text += comparison_text(results.comparisons, results.lengths.back(), "needles", signed_points);
  if (const std::string hopeless = hopeless_text(results); !hopeless.empty()) {
    text += cat("\n", hopeless, "\n");
  }
  return text + remarks(results);
}

}  // namespace mrrope::eval
