// SPDX-License-Identifier: Apache-2.0
#include "eval/stats/comparison.h"

#include <cmath>
#include <limits>

#include "base/json.h"
#include "base/text.h"
#include "base/text_table.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

std::vector<Comparison> compare_methods(
    const std::vector<std::string>& methods, const std::vector<std::int64_t>& lengths,
    const std::function<PairedDifference(std::size_t, std::size_t, std::size_t)>& difference) {
  std::vector<Comparison> all;
  for (std::size_t l = 0; l < lengths.size(); ++l) {
    const std::size_t first = all.size();
    std::vector<double> p;
    for (std::size_t a = 0; a < methods.size(); ++a) {
      for (std::size_t b = a + 1; b < methods.size(); ++b) {
        all.push_back({lengths[l], methods[a], methods[b], difference(a, b, l),
                       std::numeric_limits<double>::quiet_NaN()});
        p.push_back(all.back().difference.p);
      }
    }
    const std::vector<double> corrected = holm(p);
    for (std::size_t i = 0; i < corrected.size(); ++i) all[first + i].corrected_p = corrected[i];
  }
  return all;
}

ordered_json comparisons_json(const std::vector<Comparison>& comparisons,
                              const std::string& metric) {
  ordered_json list = ordered_json::array();
  for (const Comparison& c : comparisons) {
    const Estimate& d = c.difference.mean_difference;
    list.push_back({{"length", c.length},
                    {"a", c.a},
                    {"b", c.b},
                    {"metric", metric},
                    {"difference", json_or_null(d.value)},
                    {"stderr", json_or_null(d.error)},
                    {"n", d.n},
                    {"p_holm", json_or_null(c.corrected_p)}});
  }
  return list;
}

std::string comparison_text(const std::vector<Comparison>& comparisons, std::int64_t length,
                            const std::string& over,
                            const std::function<std::string(const PairedDifference&)>& size) {
  std::vector<TextRow> rows;
  for (const Comparison& c : comparisons) {
    if (c.length != length || c.difference.mean_difference.n < 2) continue;
    rows.push_back({cat("  ", c.a, " against ", c.b), size(c.difference),
                    cat("p ", c.corrected_p < 0.0001 ? "< 0.0001" : fixed(c.corrected_p, 4)),
                    c.corrected_p < kSignificant ? "significant" : "not significant"});
  }
  if (rows.empty()) return {};
  return cat("\nDifferences at ", length_text(length), " (t test paired over ", over,
             ", p corrected by Holm):\n", aligned(rows));
}

std::string percent_score(const Estimate& score) {
  if (score.n == 0) return "-";
  std::string text = fixed(100 * score.value, 1);
  if (std::isfinite(score.error)) text += " +-" + fixed(100 * score.error, 1);
  return text;
}

std::string signed_points(const PairedDifference& difference) {
  const Estimate& d = difference.mean_difference;
  return cat(d.value < 0 ? "" : "+", percent_score(d), " points");
}

}  // namespace mrrope::eval
