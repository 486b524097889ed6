// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/text.h"
#include "theory/curves.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

using nlohmann::ordered_json;

TheoryFigure estimate_figure(const Geometry& g, std::vector<double> bases, std::int64_t length,
                             double bound) {
  const bool given = !bases.empty();
  if (bases.empty()) bases = {100, 1000, 10000, 100000, 500000, 1000000};
  if (!given && std::find(bases.begin(), bases.end(), g.base) == bases.end()) {
    bases.push_back(g.base);
    std::sort(bases.begin(), bases.end());
  }
  TheoryFigure result;
  result.title = "The position that the angles suggest";
  result.words = cat(
      "m-hat = sum over ", pair_count(g),
      " pairs of beta^j (m theta_j mod 2 pi). Linear up to: the ",
      "largest n for which the straight line through the origin that fits 0 .. n-1 best is off by "
      "at ",
      "most ", number(100 * bound), " % (root of summed squares over those of m-hat) at n and ",
      "everywhere before.\nThe paper's second form of this sum has beta^-j: its terms then fade ",
      "with j, and the curve stays flat (last column: its largest value).\n");
  report::LineChart chart = curve_chart(g, "Biased position estimate",
                                        {"position", report::Spacing::linear, true}, "estimate");
  report::DataTable table;
  table.caption = "Linear range";
  table.header = {"base", "linear up to", "slope", "error", "largest value as printed"};
  table.text_columns = 0;
  ordered_json& list = result.json["bases"] = ordered_json::array();
  int colour = 0;
  for (const double base : bases) {
    Geometry other = g;
    other.base = base;
    other.trained_factor.clear();
    validate(other);
    const std::vector<double> theta = trained_theta(other);
    const std::vector<double> estimate = position_estimate(theta, length);
    const LinearRange range = linear_range(estimate, bound);
    double printed = 0;  // with the exponent's sign as the paper has it
    for (std::int64_t m = 0; m < length; m += std::max<std::int64_t>(1, length / 4096)) {
      double sum = 0;
      for (const double t : theta) sum += t * std::fmod(double(m) * t, 2 * std::numbers::pi);
      printed = std::max(printed, sum);
    }
    const bool to_the_end = range.length == length;
    table.rows.push_back({number(base), cat(range.length, to_the_end ? " (the end)" : ""),
                          significant(range.slope, 5), fixed(100 * range.error, 2) + " %",
                          significant(printed, 4)});
    report::Series s{cat("base ", number(base)), 1 + colour++ % (report::kColours - 1), false, {}};
    for (std::size_t m = 0; m < estimate.size(); ++m) s.points.push_back({double(m), estimate[m]});
    chart.series.push_back(std::move(s));
    list.push_back({{"base", base},
                    {"linear_length", range.length},
                    {"slope", range.slope},
                    {"relative_error", range.error},
                    {"largest_as_printed", printed}});
  }
  result.json["geometry"] = geometry_fields(g);
  result.json["length"] = length;
  result.json["bound"] = bound;
  set_table(result, std::move(table));
  result.figures.push_back({"Estimate", "estimate", chart.title, "", std::move(chart)});
  return result;
}

}  // namespace mrrope::theory
