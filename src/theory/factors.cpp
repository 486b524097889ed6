// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "theory/curves.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

using nlohmann::ordered_json;

TheoryFigure factors_figure(const Geometry& g, const std::vector<PlanGroup>& groups) {
  TheoryFigure result;
  result.title = "Factors and radix multipliers";
  result.words = cat(
      geometry_text(g),
      "\nShape: how lambda changes inside the middle. YaRN's ramp over pair indices, which engines "
      "run, is progressive; the ramp over rotations, which the paper's proof is about, is "
      "regressive below scale 32 (beta_fast / beta_slow).\n");
  report::DataTable shapes;
  shapes.caption = "Shapes";
  shapes.header = {"method", "scale", "shape", "low", "high", "range times", "largest lambda"};
  shapes.text_columns = 3;
  report::DataTable pairs;
  pairs.caption = "Cumulative factor s_d and lambda_d per pair";
  pairs.header = {"method", "scale", "pair", "factor", "lambda"};
  pairs.text_columns = 1;
  ordered_json& list = result.json["plans"] = ordered_json::array();
  for (const PlanGroup& group : groups) {
    report::LineChart factor;
    factor.x = {"pair, from fast to slow", report::Spacing::linear, false};
    factor.y = {"cumulative factor", report::Spacing::log, false};
    factor.dots = false;
    report::LineChart lambda = factor;
    lambda.y = {"lambda", report::Spacing::linear, false};
    report::Palette palette;
    for (const NamedPlan& c : group.plans) {
      const Plan& plan = c.plan;
      const std::vector<double> lambdas = plan.lambda();
      const std::string s = number(plan.extension().scale);
      shapes.rows.push_back({c.name, s, to_string(plan.shape()), cat(plan.boundaries().low),
                             cat(plan.boundaries().high), significant(range_growth(plan), 6),
                             fixed(*std::max_element(lambdas.begin(), lambdas.end()), 5)});
      report::Series sf = palette.series(c.name);
      report::Series sl = sf;
      for (std::size_t i = 0; i < plan.factor().size(); ++i) {
        sf.points.push_back({double(i), plan.factor()[i]});
        if (i < lambdas.size()) sl.points.push_back({double(i), lambdas[i]});
        pairs.rows.push_back({c.name, s, cat(i), number(plan.factor()[i]),
                              i < lambdas.size() ? number(lambdas[i]) : ""});
      }
      factor.series.push_back(std::move(sf));
      lambda.series.push_back(std::move(sl));
      list.push_back(
          {{"method", c.name},
           {"scale", plan.extension().scale},
           {"shape", to_string(plan.shape())},
           {"boundaries", {{"low", plan.boundaries().low}, {"high", plan.boundaries().high}}},
           {"factor", plan.factor()},
           {"lambda", lambdas}});
      factor.marks = {{double(plan.boundaries().low), cat("low ", plan.boundaries().low)},
                      {double(plan.boundaries().high), cat("high ", plan.boundaries().high)}};
      lambda.marks = factor.marks;
    }
    factor.title = "Cumulative factor per pair" + group.name;
    lambda.title = "Radix multiplier lambda per digit" + group.name;
    result.figures.push_back({"Factors", "factors", factor.title, "", factor});
    result.figures.push_back({"Factors", "lambdas", lambda.title, "", lambda});
  }
  result.json["geometry"] = geometry_fields(g);
  result.data = std::move(pairs);
  result.page = result.terminal = {std::move(shapes)};
  return result;
}

}  // namespace mrrope::theory
