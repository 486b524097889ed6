// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "mrrope/theory.h"
#include "theory/geometry_text.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

using nlohmann::ordered_json;

double reach_of(const Geometry& g, const std::vector<NamedPlan>& plans) {
  double reach = double(g.train_length);
  for (const NamedPlan& c : plans) {
    reach = std::max(reach, c.plan.extension().scale * double(g.train_length));
  }
  return reach;
}

TheoryFigure digits_figure(const Geometry& g, const std::vector<NamedPlan>& plans,
                           std::vector<std::int64_t> positions) {
  if (positions.empty()) positions = {1000, 1001, g.train_length, 4 * g.train_length + 1};
  // Every position that a plan is meant for, up to a count that takes no time.
  const std::int64_t counted = std::int64_t(std::min(reach_of(g, plans), double(1 << 20)));

  TheoryFigure result;
  result.title = "Positions as digits";
  const double beta = std::pow(g.base, 1.0 / pair_count(g));
  result.words = cat(
      geometry_text(g), ": ", pair_count(g), " digits in radix beta = ", significant(beta, 5),
      " (base^(1/", pair_count(g), ")). A digit of weight w is floor(position / w) mod its radix;",
      " a method multiplies the radix of digit j by lambda_j.\nCollisions: positions below ",
      counted, " with exactly the digits of the one before.\n");
  report::DataTable summary;
  summary.caption = "Number systems";
  summary.header = {"method",          "scale",       "shape",     "first open digit",
                    "first open pair", "range times", "collisions"};
  summary.text_columns = 3;
  std::vector<report::HeatMap> maps;
  ordered_json& list = result.json["plans"] = ordered_json::array();
  for (const NamedPlan& c : plans) {
    const Plan& plan = c.plan;
    const std::int64_t lost = colliding_positions(plan, counted);
    summary.rows.push_back({c.name, significant(plan.extension().scale, 6), to_string(plan.shape()),
                            cat(first_open_digit(plan, g.train_length)),
                            cat(first_open_pair(plan, g.train_length)),
                            significant(range_growth(plan), 6), cat(lost)});
    report::HeatMap map;
    map.title = c.name;
    map.x_label = "digit, from fast to slow";
    map.y_label = "position";
    map.shades = report::Shades::amount;
    for (int j = 0; j < pair_count(g); ++j) map.columns.push_back(cat(j));
    ordered_json shown = ordered_json::array();
    for (const std::int64_t m : positions) {
      const std::vector<Digit> digits = digits_of(plan, double(m));
      map.rows.push_back(cat(m));
      map.values.emplace_back();
      map.details.emplace_back();
      ordered_json values = ordered_json::array();
      for (std::size_t j = 0; j < digits.size(); ++j) {
        map.values.back().push_back(digits[j].value / digits[j].radix);
        map.details.back().push_back(cat(c.name, ", position ", m, ", digit ", j, "\nweight ",
                                         significant(digits[j].weight, 5), ", radix ",
                                         significant(digits[j].radix, 5), "\nvalue ",
                                         significant(digits[j].value, 5)));
        values.push_back(digits[j].value);
      }
      shown.push_back({{"position", m}, {"digits", values}});
    }
    maps.push_back(std::move(map));
    ordered_json radix = ordered_json::array();
    ordered_json weight = ordered_json::array();
    for (const Digit& d : digits_of(plan, 0)) {
      radix.push_back(d.radix);
      weight.push_back(d.weight);
    }
    list.push_back({{"method", c.name},
                    {"scale", plan.extension().scale},
                    {"first_open_digit", first_open_digit(plan, g.train_length)},
                    {"first_open_pair", first_open_pair(plan, g.train_length)},
                    {"range_growth", range_growth(plan)},
                    {"colliding_positions", lost},
                    {"counted_positions", counted},
                    {"radix", radix},
                    {"weight", weight},
                    {"positions", shown}});
  }
  result.json["geometry"] = geometry_fields(g);
  result.json["beta"] = beta;
  report::DataTable digits;
  digits.caption = "Digits";
  digits.header = {"digit", "turns in the window"};
  digits.text_columns = 0;
  for (const NamedPlan& c : plans) {
    digits.header.push_back(c.name + " radix");
    for (const std::int64_t m : positions) digits.header.push_back(cat(c.name, " ", m));
  }
  const std::vector<double> turns = rotations_in_window(g);
  for (int j = 0; j < pair_count(g); ++j) {
    std::vector<std::string> row = {cat(j), significant(turns[std::size_t(j)], 4)};
    for (const NamedPlan& c : plans) {
      row.push_back(significant(digits_of(c.plan, 0)[std::size_t(j)].radix, 5));
      for (const std::int64_t m : positions) {
        row.push_back(significant(digits_of(c.plan, double(m))[std::size_t(j)].value, 4));
      }
    }
    digits.rows.push_back(std::move(row));
  }
  result.data = digits;
  result.page = {summary, digits};
  result.terminal = {summary};
  if (plans.size() <= 2) result.terminal.push_back(digits);
  result.figures.push_back({"Digits", "digits", "Digits of positions",
                            "Shade: the digit over its radix.", std::move(maps)});
  return result;
}

}  // namespace mrrope::theory
