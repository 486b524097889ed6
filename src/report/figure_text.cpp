// SPDX-License-Identifier: Apache-2.0
// Sentences under the figures.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "report/report.h"

namespace mrrope::report {

std::string best_and_worst(const LineChart& chart, bool higher_is_better) {
  std::map<double, std::vector<std::pair<double, std::string>>> by_length;
  for (const Series& s : chart.series) {
    for (const ChartPoint& p : s.points) {
      if (std::isfinite(p.y)) by_length[p.x].emplace_back(p.y, s.name);
    }
  }
  for (auto at = by_length.rbegin(); at != by_length.rend(); ++at) {
    const auto [low, high] =
        std::minmax_element(at->second.begin(), at->second.end(),
                            [](const auto& a, const auto& b) { return a.first < b.first; });
    if (low->first == high->first) continue;
    const auto& best = higher_is_better ? *high : *low;
    const auto& worst = higher_is_better ? *low : *high;
    return cat("At ", tick_text(chart.x, at->first), " ", best.second, " is best (",
               value_text(best.first), "), ", worst.second, " worst (", value_text(worst.first),
               "). ");
  }
  return {};
}

std::string scale_text(const RecordedMethod& method, std::int64_t window, std::int64_t longest) {
  const double asked = double(longest) / double(window);
  if (method.untouched || window <= 0 || !(method.scale > 1.005 * std::max(1.0, asked))) return {};
  const double reach = std::min(method.scale * double(window), 1e15);
  return cat(" ", method.method, " has a scale of ", significant(method.scale, 3),
             ", more than the ", significant(asked, 3), " windows of ", length_text(longest),
             " tokens: ",
             method.scale_reason.empty() ? "it is made for " + length_text(std::llround(reach))
                                         : method.scale_reason,
             ".");
}

}  // namespace mrrope::report
