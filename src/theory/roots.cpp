// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "base/text.h"
#include "theory/curves.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

using nlohmann::ordered_json;

namespace {

constexpr std::int64_t kNoRoot = std::numeric_limits<std::int64_t>::max();

// "2, 4..6, 10": runs of neighbours in the list of scales are joined.
std::string runs_text(const std::vector<double>& scales, const std::vector<bool>& chosen) {
  std::string text;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (!chosen[i]) continue;
    std::size_t last = i;
    while (last + 1 < scales.size() && chosen[last + 1]) ++last;
    text += cat(text.empty() ? "" : ", ", number(scales[i]));
    if (last > i) text += cat("..", number(scales[last]));
    i = last;
  }
  return text.empty() ? "-" : text;
}

// Two methods over the scales.
struct Order {
  std::vector<bool> first_ahead;
  std::vector<bool> equal;
  std::vector<std::size_t> flips;  // at this index the order is the reverse of that before it
};

Order order_of(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  Order order;
  int before = 0;  // who was ahead last; equal roots do not count
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int now = a[i] > b[i] ? 1 : a[i] < b[i] ? -1 : 0;
    order.first_ahead.push_back(now > 0);
    order.equal.push_back(now == 0);
    if (now != 0 && before != 0 && now != before) order.flips.push_back(i);
    if (now != 0) before = now;
  }
  return order;
}

std::ptrdiff_t count(const std::vector<bool>& list) {
  return std::count(list.begin(), list.end(), true);
}

}  // namespace

TheoryFigure roots_figure(const Geometry& g, const std::vector<double>& scales,
                          const std::vector<PlanGroup>& groups, std::int64_t length) {
  std::vector<std::string> names;
  for (const NamedPlan& c : groups.front().plans) names.push_back(c.name);
  std::vector<std::vector<std::int64_t>> roots(names.size());  // [method][scale]
  for (const PlanGroup& group : groups) {
    for (std::size_t c = 0; c < names.size(); ++c) {
      const std::vector<double>& theta = group.plans.at(c).plan.theta();
      roots[c].push_back(first_negative(theta, length).value_or(kNoRoot));
    }
  }

  TheoryFigure result;
  result.title = "How far similar tokens stay ahead of random ones, against the scale";
  result.words =
      cat(geometry_text(g), "\nFirst m below ", length, " with B(m) = sum over pairs of ",
          "cos(m theta_j) < 0, at ", scales.size(), " scales from ", number(scales.front()), " to ",
          number(scales.back()),
          ". It does not grow steadily: another dip of B becomes the first one below 0.\n",
          "Ahead: its first negative m is larger. Flips: neighbouring scales between which the "
          "order of two methods changes.\n");
  report::DataTable table;
  table.caption = "First negative m";
  table.text_columns = 0;
  table.header = {"scale"};
  table.header.insert(table.header.end(), names.begin(), names.end());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    std::vector<std::string> row = {number(scales[i])};
    for (const auto& of : roots) row.push_back(of[i] == kNoRoot ? "none" : cat(of[i]));
    table.rows.push_back(std::move(row));
  }
  report::LineChart chart;
  chart.title = "First negative m of B(m) against the scale";
  chart.x = {"scale", report::Spacing::linear, false};
  chart.y = {"first negative m", report::Spacing::log, false};
  chart.dots = scales.size() <= 24;
  report::Palette palette;
  ordered_json& methods = result.json["methods"] = ordered_json::array();
  for (std::size_t c = 0; c < names.size(); ++c) {
    report::Series s = palette.series(names[c]);
    ordered_json list = ordered_json::array();
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const bool none = roots[c][i] == kNoRoot;
      s.points.push_back({scales[i], none ? report::kNothing : double(roots[c][i])});
      list.push_back(none ? ordered_json() : ordered_json(roots[c][i]));
    }
    chart.series.push_back(std::move(s));
    methods.push_back({{"method", names[c]}, {"first_negative", list}});
  }

  report::DataTable flips;
  flips.caption = "Where the order flips (pairs of methods whose order changes)";
  flips.header = {"method", "against", "flips", "ahead at", "equal at", "ahead at scales"};
  flips.text_columns = 2;
  flips.text_at_end = true;
  ordered_json& pairs = result.json["pairs"] = ordered_json::array();
  for (std::size_t a = 0; a < names.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const Order order = order_of(roots[a], roots[b]);
      ordered_json at = ordered_json::array();
      for (const std::size_t i : order.flips) at.push_back({scales[i - 1], scales[i]});
      pairs.push_back({{"method", names[a]},
                       {"against", names[b]},
                       {"flips", at},
                       {"ahead", count(order.first_ahead)},
                       {"equal", count(order.equal)}});
      if (order.flips.empty()) continue;
      flips.rows.push_back({names[a], names[b], cat(order.flips.size()),
                            cat(count(order.first_ahead), " of ", scales.size()),
                            cat(count(order.equal)), runs_text(scales, order.first_ahead)});
    }
  }
  result.json["geometry"] = geometry_fields(g);
  result.json["length"] = length;
  result.json["scales"] = scales;
  result.data = table;
  result.page = {flips, table};
  result.terminal = {std::move(table), std::move(flips)};
  result.figures.push_back(
      {"Bound", "bound-scales", chart.title, "Higher is farther.", std::move(chart)});
  return result;
}

}  // namespace mrrope::theory
