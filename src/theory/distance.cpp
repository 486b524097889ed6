// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "mrrope/ladder.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

using nlohmann::ordered_json;

TheoryFigure distance_figure(const Geometry& g, const std::vector<NamedLadder>& ladders,
                             std::int64_t length) {
  constexpr std::int64_t kSteps = 256;
  TheoryFigure result;
  result.title = "Distance seen against distance";
  result.words = cat(geometry_text(g), "\nHow far away the last of ", length,
                     " tokens sees the others: the angle between two rotations over the trained "
                     "theta of the pair. Training had no distance beyond the window.\n");
  report::DataTable table;
  table.caption = cat("Distance seen by token ", length, ", fastest and slowest pair");
  table.header = {"method", "distance", "fastest pair", "slowest pair"};
  table.text_columns = 1;
  report::DataTable few = table;
  report::LineChart chart;
  chart.x = {"distance in tokens", report::Spacing::linear, false};
  chart.y = {"distance seen", report::Spacing::linear, false};
  chart.dots = false;
  chart.marks = {{double(g.train_length), cat("window ", g.train_length)}};
  report::LineChart charts[] = {chart, chart};
  const std::size_t pairs[] = {0, std::size_t(pair_count(g)) - 1};
  report::Palette palette;
  ordered_json& list = result.json["methods"] = ordered_json::array();
  for (const NamedLadder& named : ladders) {
    report::Series series[] = {palette.series(named.name), {}};
    series[1] = series[0];
    ordered_json distances = ordered_json::array();
    ordered_json seen[] = {ordered_json::array(), ordered_json::array()};
    for (std::int64_t step = 0; step <= kSteps; ++step) {
      const std::int64_t distance = (length - 1) * step / kSteps;
      double d[2];
      for (int which = 0; which < 2; ++which) {
        d[which] = seen_distance(named.ladder, length - 1, length - 1 - distance, pairs[which]);
        series[which].points.push_back({double(distance), d[which]});
        seen[which].push_back(d[which]);
      }
      distances.push_back(distance);
      table.rows.push_back({named.name, cat(distance), number(d[0]), number(d[1])});
      if (step > 0 && step % (kSteps / 4) == 0) {
        few.rows.push_back({named.name, cat(distance), fixed(d[0], 1), fixed(d[1], 1)});
      }
    }
    for (int which = 0; which < 2; ++which) {
      charts[which].series.push_back(std::move(series[which]));
    }
    list.push_back({{"method", named.name},
                    {"distance", distances},
                    {"fastest_pair", seen[0]},
                    {"slowest_pair", seen[1]}});
  }
  charts[0].title = "Distance seen in the fastest pair";
  charts[1].title = "Distance seen in the slowest pair";
  result.figures = {{"Distance", "distance-fast", charts[0].title, "", charts[0]},
                    {"Distance", "distance-slow", charts[1].title, "", charts[1]}};
  result.json["geometry"] = geometry_fields(g);
  result.json["length"] = length;
  result.data = std::move(table);
  result.page = result.terminal = {std::move(few)};
  return result;
}

}  // namespace mrrope::theory
