// SPDX-License-Identifier: Apache-2.0
#include "theory/theory_figure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <optional>

#include "base/text.h"
#include "core/methods.h"
#include "mrrope/ladder.h"
#include "report/charts/markup.h"
#include "report/page/html_page.h"
#include "report/paper/paper.h"
#include "theory/curves.h"

namespace mrrope::theory {

using nlohmann::ordered_json;

namespace {

// The mark of a curve that never goes below 0 here.
std::string negative_text(const std::optional<std::int64_t>& m, std::int64_t limit) {
  return m ? cat(*m) : cat("none below ", limit);
}

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

std::string page_of(const TheoryFigure& result) {
  std::string body =
      cat("<section class=\"verdict\"><h1>", report::escaped(result.title), "</h1>\n");
  std::string line;
  for (const char c : result.words + "\n") {
    if (c != '\n') {
      line += c;
    } else if (!line.empty()) {
      body += cat("<p>", report::escaped(line), "</p>\n");
      line.clear();
    }
  }
  body += "</section>\n";
  std::string lines;
  std::string maps;
  for (const report::Figure& f : result.figures) (f.is_map() ? maps : lines) += to_html(f);
  if (!lines.empty()) body += cat("<div class=\"grid\">\n", lines, "</div>\n");
  body += maps;
  for (const report::DataTable& t : result.page) body += to_html(t);
  return report::to_page({cat("mrrope theory: ", result.title), "theory", body});
}

double reach_of(const Geometry& g, const std::vector<NamedPlan>& plans) {
  double reach = double(g.train_length);
  for (const NamedPlan& c : plans) {
    const Extension& e = c.plan.extension();
    reach = std::max({reach, e.scale * double(g.train_length), double(e.length)});
  }
  return reach;
}

std::string geometry_text(const Geometry& g) {
  return cat("rotary_dim ", g.rotary_dim, ", base ", g.base, ", window ", g.train_length);
}

nlohmann::ordered_json geometry_fields(const Geometry& g) {
  return {{"rotary_dim", g.rotary_dim}, {"base", g.base}, {"train_length", g.train_length}};
}

report::LineChart curve_chart(const Geometry& g, std::string title, report::Axis x,
                              std::string y_label) {
  report::LineChart chart;
  chart.title = std::move(title);
  chart.x = std::move(x);
  chart.y = {std::move(y_label), report::Spacing::linear, false};
  chart.dots = false;
  chart.marks = {{double(g.train_length), cat("window ", length_text(g.train_length))}};
  return chart;
}

report::DataTable new_table(std::string caption, std::vector<std::string> header,
                            std::size_t text_columns, bool text_at_end) {
  return {std::move(caption), std::move(header), {}, text_columns, text_at_end};
}

void set_table(TheoryFigure& figure, report::DataTable table) {
  figure.data = table;
  figure.page = figure.terminal = {std::move(table)};
}

TheoryFigure claims_figure() {
  const ordered_json& claims = report::paper().at("claims");
  TheoryFigure result;
  result.title = "What the paper claims, and what we find";
  result.json = {{"claims", claims}};
  result.data.caption = "Claims of the paper";
  result.data.header = {"id", "verdict", "place", "says", "reason", "command"};
  result.data.text_columns = result.data.header.size();
  std::map<std::string, int> counts;
  std::string lines;
  for (const ordered_json& claim : claims) {
    std::vector<std::string> row;
    for (const std::string& key : result.data.header) row.push_back(claim.at(key));
    lines += cat("\n", row[0], ": ", row[1], " (", row[2], ")\n  says: ", row[3],
                 "\n  reason: ", row[4], "\n  command: ", row[5], "\n");
    ++counts[row[1]];
    result.data.rows.push_back(std::move(row));
  }
  result.words = cat(claims.size(), " claims:");
  for (const auto& [verdict, n] : counts) {
    result.words += cat(result.words.back() == ':' ? " " : ", ", verdict, " ", n);
  }
  result.words +=
      ". Verdicts on results go by the numbers that the paper prints; open means that only a run "
      "can tell.";
  result.page = {result.data};
  result.details = "\n" + lines;  // a terminal shows lines better than a table of wide columns
  return result;
}

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
  report::DataTable table = new_table(
      "Linear range", {"base", "linear up to", "slope", "error", "largest value as printed"}, 0);
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

TheoryFigure factors_figure(const Geometry& g, const std::vector<PlanGroup>& groups) {
  TheoryFigure result;
  result.title = "Factors and radix multipliers";
  result.words =
      cat(geometry_text(g),
          "\nShape: how lambda changes inside the middle. YaRN's ramp over pair indices, which "
          "engines run, is progressive; the ramp over rotations, which the paper's proof is about, "
          "is regressive below scale 32 (beta_fast / beta_slow).\n");
  report::DataTable shapes = new_table(
      "Shapes", {"method", "scale", "shape", "low", "high", "range times", "largest lambda"}, 3);
  report::DataTable pairs = new_table("Cumulative factor s_d and lambda_d per pair",
                                      {"method", "scale", "pair", "factor", "lambda"});
  ordered_json& list = result.json["plans"] = ordered_json::array();
  for (const PlanGroup& group : groups) {
    report::LineChart factor;
    factor.title = "Cumulative factor per pair" + group.name;
    factor.x = {"pair, from fast to slow", report::Spacing::linear, false};
    factor.y = {"cumulative factor", report::Spacing::log, false};
    factor.dots = false;
    report::LineChart lambda = factor;
    lambda.title = "Radix multiplier lambda per digit" + group.name;
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
    result.figures.push_back({"Factors", "factors", factor.title, "", factor});
    result.figures.push_back({"Factors", "lambdas", lambda.title, "", lambda});
  }
  result.json["geometry"] = geometry_fields(g);
  result.data = std::move(pairs);
  result.page = result.terminal = {std::move(shapes)};
  return result;
}

TheoryFigure distance_figure(const Geometry& g, const std::vector<NamedLadder>& ladders,
                             std::int64_t length) {
  constexpr std::int64_t kSteps = 256;
  TheoryFigure result;
  result.title = "Distance seen against distance";
  result.words = cat(geometry_text(g), "\nHow far away the last of ", length,
                     " tokens sees the others: the angle between two rotations over the trained "
                     "theta of the pair. Training had no distance beyond the window.\n");
  report::DataTable table =
      new_table(cat("Distance seen by token ", length, ", fastest and slowest pair"),
                {"method", "distance", "fastest pair", "slowest pair"});
  report::DataTable few = table;
  report::LineChart chart =
      curve_chart(g, "", {"distance in tokens", report::Spacing::linear, false}, "distance seen");
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
    for (int which : {0, 1}) charts[which].series.push_back(std::move(series[which]));
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
  report::DataTable table = new_table(
      "Bound", {"method", "scale", "first negative m", "middle: variation", "middle: spread"});
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
  report::DataTable table = new_table("First negative m", {"scale"}, 0);
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

  report::DataTable flips =
      new_table("Where the order flips (pairs of methods whose order changes)",
                {"method", "against", "flips", "ahead at", "equal at", "ahead at scales"}, 2, true);
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
