// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "base/text.h"
#include "core/methods.h"
#include "theory/curves.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

using nlohmann::ordered_json;

namespace {

// The mark of a curve that never goes below 0 here.
std::string negative_text(const std::optional<std::int64_t>& m, std::int64_t limit) {
  return m ? cat(*m) : cat("none below ", limit);
}

}  // namespace

TheoryFigure bound_figure(const Geometry& g, const std::vector<NamedPlan>& plans,
                          std::int64_t length, std::int64_t wanted) {
  if (length == 0) length = std::int64_t(std::min(reach_of(g, plans), double(1 << 20)));
  TheoryFigure result;
  result.title = "How far similar tokens stay ahead of random ones";
  result.words =
      cat(geometry_text(g), "\nB(m) = sum over pairs of cos(m theta_j); first negative m below ",
          length, ". Middle: the same sum over the pairs from low to high alone, with its total ",
          "variation and standard deviation over 0 .. ", length - 1, ".\n",
          "Error of a sum: below 1e-8 up to a million positions (double).\n");
  report::DataTable table;
  table.caption = "Bound";
  table.header = {"method", "scale", "first negative m", "middle: variation", "middle: spread"};
  if (wanted > 0) {
    table.header.push_back(cat("least scale for ", length_text(wanted)));
    const auto base = smallest_base(g, wanted);
    result.words += cat("Least base of the untouched model for ", length_text(wanted), ": ",
                        base ? significant(*base, 6) : std::string("none up to 1e12"), ".\n");
    result.json["least_base"] = base ? ordered_json(*base) : ordered_json();
  }
  table.text_columns = 1;
  report::LineChart whole =
      curve_chart(g, "B(m), all pairs", {"distance m", report::Spacing::log, true}, "B(m)");
  report::LineChart middle = whole;
  middle.title = "B(m), middle pairs alone";
  report::Palette palette;
  ordered_json& list = result.json["plans"] = ordered_json::array();
  for (const NamedPlan& c : plans) {
    const Plan& plan = c.plan;
    const std::vector<double> sum = cosine_sum(plan.theta(), length);
    const auto [low, high] = plan.boundaries();
    const std::span<const double> theta = plan.theta();
    const auto first = std::size_t(std::min(low, pair_count(g)));
    const auto last = std::size_t(std::min(high, pair_count(g)));
    const std::vector<double> part = cosine_sum(theta.subspan(first, last - first), length);
    const Oscillation o = oscillation_of(part);
    const auto negative = first_negative(theta, length);
    table.rows.push_back({c.name, number(plan.extension().scale), negative_text(negative, length),
                          significant(o.variation, 5), significant(o.spread, 4)});
    ordered_json entry = {{"method", c.name},
                          {"scale", plan.extension().scale},
                          {"first_negative", negative ? ordered_json(*negative) : ordered_json()},
                          {"middle_variation", o.variation},
                          {"middle_spread", o.spread}};
    if (wanted > 0) {
      std::optional<double> least;
      const Method& method = method_row(plan.extension().method);
      const bool scales = method.reach != Reach::unchanged && !method.info.takes_lists;
      if (scales) least = smallest_scale(g, plan.extension(), wanted);
      table.rows.back().push_back(!scales ? "takes no scale"
                                  : least ? significant(*least, 5)
                                          : "none up to 4096");
      entry["least_scale"] = least ? ordered_json(*least) : ordered_json();
    }
    list.push_back(std::move(entry));
    report::Series s = palette.series(c.name);
    report::Series m = s;
    for (std::size_t i = 1; i < sum.size(); ++i) {
      s.points.push_back({double(i), sum[i]});
      m.points.push_back({double(i), part[i]});
    }
    whole.series.push_back(std::move(s));
    middle.series.push_back(std::move(m));
  }
  result.json["geometry"] = geometry_fields(g);
  result.json["length"] = length;
  set_table(result, std::move(table));
  result.figures.push_back({"Bound", "bound", whole.title, "", std::move(whole)});
  result.figures.push_back({"Bound", "bound-middle", middle.title,
                            "Fewer and smaller swings mean a steadier sense of distance.",
                            std::move(middle)});
  return result;
}

}  // namespace mrrope::theory
