// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "base/text_table.h"
#include "eval/results/result_table.h"

namespace mrrope::eval {

namespace {

// Three digits after the point where they mean something.
std::string short_number(double value) {
  if (value >= 10000) return significant(value, 3);
  return fixed(value, value < 10 ? 3 : value < 100 ? 2 : 1);
}

std::string estimate_cell(const ResultTable& table, const Estimate& e) {
  if (!table.logarithmic) return percent_score(e);
  if (e.n == 0) return "-";
  return short_number(e.value) + (std::isfinite(e.error) ? " +-" + short_number(e.error) : "");
}

// A difference with its sign: of logarithms in percent, of scores in points.
std::string difference_text(const ResultTable& table, const PairedDifference& difference) {
  if (!table.logarithmic) {
    const Estimate& d = difference.mean_difference;
    return cat(d.value < 0 ? "" : "+", percent_score(d), " points");
  }
  const Estimate e = difference.percent();
  const int digits = std::abs(e.value) < 100 ? 1 : 0;
  return cat(e.value < 0 ? "" : "+", fixed(e.value, digits),
             std::isfinite(e.error) ? " +-" + fixed(e.error, digits) : "", " %");
}

std::string label(const ResultTable& table, const ResultRow& row, Axis axis) {
  switch (axis) {
    case Axis::method:
      return row.method;
    case Axis::length:
      return length_text(row.length);
    case Axis::depth:
      return significant(*row.depth, 3) + " %";
    case Axis::task:
      break;
  }
  const auto known = table.labels.find(row.task);
  return known != table.labels.end() ? known->second : row.task;
}

constexpr const char* name_of(Axis axis) {
  constexpr const char* kNames[] = {"task", "method", "length", "depth"};
  return kNames[int(axis)];
}

// From red (0) through yellow to green (1), in the 6 x 6 x 6 cube of the 256 colours; black on it.
std::string shade(double share, const std::string& text) {
  const int step = int(std::lround(10 * share));  // 0 .. 10
  const int red = std::min(5, 10 - step);
  const int green = std::min(5, step);
  return cat("\x1b[30;48;5;", 16 + 36 * red + 6 * green, "m", text, "\x1b[0m");
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

// Labels in the order of the rows, each by a key that no other has.
class Labels {
 public:
  void put(const std::string& key, const std::string& label) {
    if (seen_.insert(key).second) all.emplace_back(key, label);
  }
  std::vector<std::pair<std::string, std::string>> all;

 private:
  std::set<std::string> seen_;
};

struct Grid {
  Labels down, across;
  std::map<std::pair<std::string, std::string>, Estimate> cells;
};

Grid grid_of(const ResultTable& table, const TextTable& part) {
  const bool by_depth = part.down == Axis::depth || part.across == Axis::depth;
  const auto key = [&](const ResultRow& row, Axis axis) {
    if (axis == Axis::depth) return significant(*row.depth, 17);
    return axis == Axis::length ? cat(row.length) : axis == Axis::method ? row.method : row.task;
  };
  Grid grid;
  for (const ResultRow& row : table.rows) {
    if (row.metric != part.metric || row.depth.has_value() != by_depth) continue;
    if (part.length && row.length != *part.length) continue;
    if (!part.method.empty() && row.method != part.method) continue;
    if (part.down != Axis::task && row.task != table.task) continue;
    const std::string down = key(row, part.down);
    const std::string across = key(row, part.across);
    grid.down.put(down, label(table, row, part.down));
    grid.across.put(across, label(table, row, part.across));
    grid.cells[{down, across}] = row.estimate;
  }
  return grid;
}

// Percent, a cell per length and depth.
std::string heat_map(const Grid& grid, bool shaded) {
  constexpr std::size_t kFirst = 7;
  std::size_t width = 5;
  for (const auto& [key, label] : grid.across.all) width = std::max(width, label.size() + 2);
  std::string text = right("depth", kFirst);
  for (const auto& [key, label] : grid.across.all) text += right(label, width);
  text += "\n";
  for (const auto& [down, label] : grid.down.all) {
    text += right(label, kFirst);
    for (const auto& [across, unused] : grid.across.all) {
      const Estimate& e = grid.cells.at({down, across});
      const std::string cell = right(e.n == 0 ? "-" : fixed(100 * e.value, 0), width);
      text += shaded && e.n > 0 ? shade(e.value, cell) : cell;
    }
    text += "\n";
  }
  return text;
}

std::string comparison_text(const ResultTable& table) {
  std::vector<TextRow> rows;
  for (const Comparison& c : table.comparisons) {
    if (c.length != table.lengths.back() || c.difference.mean_difference.n < 2) continue;
    rows.push_back({cat("  ", c.a, " against ", c.b), difference_text(table, c.difference),
                    cat("p ", c.corrected_p < 0.0001 ? "< 0.0001" : fixed(c.corrected_p, 4)),
                    c.corrected_p < kSignificant ? "significant" : "not significant"});
  }
  if (rows.empty()) return {};
  return cat("\nDifferences at ", length_text(table.lengths.back()), " (t test paired over ",
             table.units, ", p corrected by Holm):\n", aligned(rows));
}

std::string verdict_line(const ResultTable& table, const MethodRow& method, const Verdict& v) {
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
  if (v.cost.mean_difference.n > 0 && !method.untouched) {
    line += cat("; costs ", difference_text(table, v.cost), " at ",
                length_text(table.reference_length()));
    if (v.divergence.n > 0) line += cat(", KL ", significant(v.divergence.value, 3));
  }
  return line + "\n";
}

}  // namespace

std::string percent_score(const Estimate& score) {
  if (score.n == 0) return "-";
  std::string text = fixed(100 * score.value, 1);
  if (std::isfinite(score.error)) text += " +-" + fixed(100 * score.error, 1);
  return text;
}

std::string to_text(const ResultTable& table, const TextTable& part, bool shaded) {
  Grid grid = grid_of(table, part);
  if (part.down == Axis::depth) return part.heading + heat_map(grid, shaded);
  const bool counted = part.down == Axis::task;
  std::vector<TextRow> rows = {{name_of(part.down)}};
  for (const auto& [key, label] : grid.across.all) rows[0].push_back(label);
  if (counted) rows[0].push_back("n");
  for (const auto& [down, label] : grid.down.all) {
    TextRow line = {label};
    std::size_t n = 0;
    for (const auto& [across, unused] : grid.across.all) {
      const Estimate& e = grid.cells[{down, across}];
      line.push_back(estimate_cell(table, e));
      n = std::max(n, e.n);
    }
    if (counted && n == 0) continue;
    if (counted) line.push_back(cat(n));
    rows.push_back(std::move(line));
  }
  return part.heading + aligned(rows);
}

std::string to_text(const ResultTable& table, bool shaded) {
  std::string text = table.heading;
  for (const TextTable& part : table.tables) text += to_text(table, part, shaded);
  text += table.summary + comparison_text(table);
  if (!table.verdicts.empty()) text += "\nVerdict:\n";
  for (std::size_t i = 0; i < table.verdicts.size(); ++i) {
    text += verdict_line(table, table.methods[i], table.verdicts[i]);
  }
  if (const std::string note = zero_baseline_note(table); !note.empty()) {
    text += cat("\n", note, "\n");
  }
  return text + (table.remarks.empty() ? "" : "\n" + table.remarks);
}

}  // namespace mrrope::eval
