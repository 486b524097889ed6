// SPDX-License-Identifier: Apache-2.0

#include "base/text.h"
#include "theory/curves.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

namespace {

std::string ranges_text(const std::vector<PositionRange>& ranges) {
  const auto text = [](const PositionRange& r) {
    return cat(r.first, r.second > r.first ? cat("..", r.second) : "");
  };
  return ranges.empty() ? "-" : joined(mapped(ranges, text), ", ");
}

}  // namespace

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
      counted, " with exactly the digits of the one before.\n",
      "Back from digits: the paper's sum of digit times weight, which is exact for radices that "
      "are integers, and the positions that have exactly these digits.\n");
  report::DataTable summary = new_table("Number systems",
                                        {"method", "scale", "shape", "first open digit",
                                         "first open pair", "range times", "collisions"},
                                        3);
  report::DataTable back =
      new_table("Positions from their digits",
                {"method", "position", "sum", "sum over position", "with these digits"}, 1, true);
  report::DataTable digits = new_table("Digits", {"digit", "turns in the window"}, 0);
  for (const double turns : rotations_in_window(g)) {
    digits.rows.push_back({cat(digits.rows.size()), significant(turns, 4)});
  }
  report::HeatMap map;
  map.title = "Digits of positions";
  map.x_label = "digit, from fast to slow";
  map.y_label = "method and position";
  map.key = "digit over its radix";
  map.shades = report::Shades::amount;
  for (int j = 0; j < pair_count(g); ++j) map.columns.push_back(cat(j));
  ordered_json& list = result.json["plans"] = ordered_json::array();
  for (const NamedPlan& c : plans) {
    const Plan& plan = c.plan;
    const std::int64_t lost = colliding_positions(plan, counted);
    summary.rows.push_back({c.name, significant(plan.extension().scale, 6), to_string(plan.shape()),
                            cat(first_open_digit(plan, g.train_length)),
                            cat(first_open_pair(plan, g.train_length)),
                            significant(range_growth(plan), 6), cat(lost)});
    const auto& [weight, radix] = number_system(plan);
    for (std::size_t j = 0; j < radix.size(); ++j) {
      digits.rows[j].push_back(significant(radix[j], 5));
    }
    digits.header.push_back(c.name + " radix");
    ordered_json shown = ordered_json::array();
    for (const std::int64_t m : positions) {
      digits.header.push_back(cat(c.name, " ", m));
      map.rows.push_back(cat(c.name, " ", m));
      map.values.emplace_back();
      map.details.emplace_back();
      map.texts.emplace_back();
      const std::vector<double> own = digits_of(plan, double(m));
      for (std::size_t j = 0; j < own.size(); ++j) {
        digits.rows[j].push_back(significant(own[j], 4));
        map.values.back().push_back(own[j] / radix[j]);
        map.texts.back().push_back(significant(own[j], 3));
        map.details.back().push_back(
            cat(c.name, ", position ", m, ", digit ", j, "\nweight ", significant(weight[j], 5),
                ", radix ", significant(radix[j], 5), "\nvalue ", significant(own[j], 5)));
      }
      const double sum = digit_sum(plan, own);
      const bool written = double(m) < writable_positions(plan);
      const std::vector<PositionRange> same =
          written ? positions_of(plan, own) : std::vector<PositionRange>{};
      back.rows.push_back({c.name, cat(m), significant(sum, 6),
                           m > 0 ? significant(sum / double(m), 4) : "-",
                           written ? ranges_text(same)
                                   : cat("not written: only positions below ",
                                         significant(writable_positions(plan), 6))});
      shown.push_back({{"position", m},
                       {"digits", own},
                       {"sum", sum},
                       {"positions", written ? ordered_json(same) : ordered_json()}});
    }
    list.push_back({{"method", c.name},
                    {"scale", plan.extension().scale},
                    {"first_open_digit", first_open_digit(plan, g.train_length)},
                    {"first_open_pair", first_open_pair(plan, g.train_length)},
                    {"range_growth", range_growth(plan)},
                    {"colliding_positions", lost},
                    {"counted_positions", counted},
                    {"writable_positions", writable_positions(plan)},
                    {"radix", radix},
                    {"weight", weight},
                    {"positions", shown}});
  }
  result.json["geometry"] = geometry_fields(g);
  result.json["beta"] = beta;
  result.data = digits;
  result.page = {summary, back, digits};
  result.terminal = {summary, back};
  if (plans.size() <= 2) result.terminal.push_back(digits);
  result.figures.push_back(
      {"Digits", "digits", map.title,
       "Digits to the right of the last shaded one are open: no position so far uses them. Rows "
       "that look the same are positions that the method cannot tell apart.",
       std::vector<report::HeatMap>{std::move(map)}});
  return result;
}

TheoryFigure position_figure(const Geometry& g, const std::vector<NamedPlan>& plans,
                             const std::vector<double>& values) {
  constexpr double kPrinted = 5.001e-4;  // half of the last of four significant digits
  TheoryFigure result;
  result.title = "The position that these digits write";
  result.words = cat(geometry_text(g), ": ", pair_count(g),
                     " digits, the fastest first. Sum: of digit times weight, as the paper has ",
                     "it, which is exact for radices that are integers.\n");
  report::DataTable table = new_table(
      "Positions", {"method", "scale", "writes positions below", "sum", "position"}, 1, true);
  ordered_json& list = result.json["plans"] = ordered_json::array();
  bool found = false;
  for (const NamedPlan& c : plans) {
    const std::vector<PositionRange> ranges = positions_of(c.plan, values, kPrinted);
    const double sum = digit_sum(c.plan, values);
    found = found || !ranges.empty();
    table.rows.push_back({c.name, number(c.plan.extension().scale),
                          significant(writable_positions(c.plan), 6), significant(sum, 6),
                          ranges_text(ranges)});
    list.push_back({{"method", c.name},
                    {"scale", c.plan.extension().scale},
                    {"writable_positions", writable_positions(c.plan)},
                    {"sum", sum},
                    {"positions", ranges}});
  }
  if (!found) {
    std::string why;
    const std::vector<double> radix = number_system(plans.front().plan).radix;
    for (std::size_t j = 0; j < radix.size() && why.empty(); ++j) {
      if (values[j] < radix[j] + kPrinted) continue;
      why = cat(": digit ", j, " is ", values[j], ", but its radix is ", significant(radix[j], 5),
                " under ", plans.front().name);
    }
    throw Error(ErrorKind::usage, cat("no position has these digits", why),
                "give the digits of one position under the same method and scale, as mrrope "
                "theory digits prints them; positions beyond what the digits can write are lost");
  }
  result.json["geometry"] = geometry_fields(g);
  set_table(result, std::move(table));
  return result;
}

}  // namespace mrrope::theory
