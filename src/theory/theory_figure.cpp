// SPDX-License-Identifier: Apache-2.0
#include "theory/theory_figure.h"

#include <numbers>

#include "base/text.h"
#include "report/report.h"
#include "theory/curves.h"

namespace mrrope::theory {

namespace {

constexpr std::int64_t kNoRoot = std::numeric_limits<std::int64_t>::max();

// "2, 4..6, 10": the scales where the order is 1; runs of neighbours are joined.
std::string runs_text(const std::vector<double>& scales, const std::vector<int>& order) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (order[i] != 1) continue;
    const std::size_t first = i;
    while (i + 1 < scales.size() && order[i + 1] == 1) ++i;
    runs.push_back(number(scales[first]) + (i > first ? ".." + number(scales[i]) : ""));
  }
  return runs.empty() ? "-" : joined(runs, ", ");
}

// From a distance on, of every sixth of an octave the lowest value, that with a band up to the
// highest, or of every half octave how far apart the two are.
enum class Shown { lowest, band, swing };
report::Series envelope(report::Series series, const std::vector<double>& values, std::int64_t from,
                        Shown shown) {
  const bool swing = shown == Shown::swing;
  const double growth = std::exp2(swing ? 1.0 / 2 : 1.0 / 6) - 1;
  for (auto at = values.begin() + std::max<std::int64_t>(1, from); at < values.end();) {
    const double first = double(at - values.begin());
    const auto width = std::max<std::ptrdiff_t>(1, std::ptrdiff_t(first * growth));
    if (swing && width > values.end() - at) break;  // a part would have swung less
    const auto end = at + std::min(width, values.end() - at);
    const auto [low, high] = std::minmax_element(at, end);
    const double middle = std::sqrt(first * double(end - values.begin() - 1));
    report::ChartPoint& p = series.points.emplace_back();
    p.x = middle, p.y = swing ? *high - *low : *low;
    if (shown == Shown::band) p.low = *low, p.high = *high;
    at = end;
  }
  return series;
}

}  // namespace

// Pictures first.
std::string page_of(const TheoryFigure& result) {
  std::string body =
      cat("<section class=\"verdict\"><h1>", report::escaped(result.title), "</h1></section>\n");
  for (const report::Figure& f : result.figures) body += to_html(f, true);
  body += cat("<p class=\"words\">", report::escaped(result.words), "</p>\n");
  for (const report::DataTable& t : result.page) body += to_html(t);
  return report::to_page(cat("mrrope theory: ", result.title), "theory", body);
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

ordered_json geometry_fields(const Geometry& g) {
  return {{"rotary_dim", g.rotary_dim}, {"base", g.base}, {"train_length", g.train_length}};
}

report::LineChart curve_chart(const Geometry& g, std::string title, report::Axis x,
                              std::string y_label) {
  return {.title = std::move(title),
          .x = std::move(x),
          .y = {std::move(y_label)},
          .marks = {report::window_mark(g.train_length)},
          .dots = false};
}

void add_chart(TheoryFigure& figure, const std::string& file, report::LineChart chart,
               const std::string& note) {
  const std::string title = chart.title;
  figure.figures.push_back({"", file, title, note, std::move(chart)});
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
  const auto counted = [](const auto& c) { return cat(c.first, " ", c.second); };
  result.words += " " + joined(mapped(counts, counted), ", ");
  result.words +=
      ". Verdicts on results go by the numbers that the paper prints; open means that only a run "
      "can tell.";
  result.page = {result.data};
  result.details = "\n" + lines;  // a terminal shows lines better than a table of wide columns
  return result;
}

TheoryFigure estimate_figure(const Geometry& g, std::vector<double> bases, std::int64_t length) {
  constexpr double kLinear = 0.05;  // relative error up to which an estimate counts as linear
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
      "most ", number(100 * kLinear), " % (root of summed squares over those of m-hat) at n and ",
      "everywhere before.\nThe paper's second form of this sum has beta^-j: its terms then fade ",
      "with j, and the curve stays flat (last column: its largest value).\n");
  report::LineChart chart = curve_chart(g, "Biased position estimate",
                                        {"position", report::Spacing::linear, true}, "estimate");
  report::DataTable table = new_table(
      "Linear range", {"base", "linear up to", "slope", "error", "largest value as printed"}, 0);
  ordered_json& list = result.json["bases"] = ordered_json::array();
  for (const double base : bases) {
    Geometry other = g;
    other.base = base;
    other.trained_factor.clear();
    validate(other);
    const std::vector<double> theta = trained_theta(other);
    const std::vector<double> estimate = position_estimate(theta, length);
    const LinearRange range = linear_range(estimate, kLinear);
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
    const int colour = 1 + int(chart.series.size()) % (report::kColours - 1);
    chart.series.push_back(
        report::with_values({cat("base ", number(base)), colour, false, {}}, estimate));
    list.push_back({{"base", base},
                    {"linear_length", range.length},
                    {"slope", range.slope},
                    {"relative_error", range.error},
                    {"largest_as_printed", printed}});
  }
  result.json["geometry"] = geometry_fields(g);
  result.json["length"] = length;
  result.json["bound"] = kLinear;
  set_table(result, std::move(table));
  add_chart(result, "estimate", std::move(chart),
            "Where a line is straight, the angles tell the position.");
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
    report::LineChart factor = report::pair_chart("Cumulative factor per pair" + group.name,
                                                  "cumulative factor", report::Spacing::log);
    report::LineChart lambda = report::pair_chart("Radix multiplier lambda per digit" + group.name,
                                                  "lambda", report::Spacing::linear);
    report::Palette palette;
    for (const NamedPlan& c : group.plans) {
      const Plan& plan = c.plan;
      const std::vector<double> lambdas = plan.lambda();
      const std::string s = number(plan.extension().scale);
      shapes.rows.push_back({c.name, s, to_string(plan.shape()), cat(plan.boundaries().low),
                             cat(plan.boundaries().high), significant(range_growth(plan), 6),
                             fixed(*std::max_element(lambdas.begin(), lambdas.end()), 5)});
      factor.series.push_back(with_values(palette.series(c.name), plan.factor()));
      lambda.series.push_back(with_values(palette.series(c.name), lambdas));
      for (std::size_t i = 0; i < plan.factor().size(); ++i) {
        pairs.rows.push_back({c.name, s, cat(i), number(plan.factor()[i]),
                              i < lambdas.size() ? number(lambdas[i]) : ""});
      }
      list.push_back(
          {{"method", c.name},
           {"scale", plan.extension().scale},
           {"shape", to_string(plan.shape())},
           {"boundaries", {{"low", plan.boundaries().low}, {"high", plan.boundaries().high}}},
           {"factor", plan.factor()},
           {"lambda", lambdas}});
      lambda.marks = factor.marks = report::boundary_marks(plan.boundaries());
      factor.y.ticks.push_back(plan.extension().scale);
    }
    add_chart(result, "factors", std::move(factor),
              "Methods rise from 1 to the scale between low and high; PI slows every pair.");
    add_chart(result, "lambdas", std::move(lambda),
              "Rising lines are progressive, falling ones regressive, flat ones uniform.");
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
  const auto chart_of = [&](const char* title) {
    report::LineChart chart =
        curve_chart(g, title, {"distance in tokens", report::Spacing::linear}, "distance seen");
    chart.marks = {{double(g.train_length), cat("window ", g.train_length)}};
    chart.y.ticks = {double(g.train_length)};
    return chart;
  };
  report::LineChart charts[] = {chart_of("Distance seen in the fastest pair"),
                                chart_of("Distance seen in the slowest pair")};
  const std::size_t pairs[] = {0, std::size_t(pair_count(g)) - 1};
  report::Palette palette;
  bool one_curve = true;  // every pair sees the same
  ordered_json& list = result.json["methods"] = ordered_json::array();
  std::vector<std::int64_t> distances;
  for (std::int64_t step = 0; step <= kSteps; ++step) {
    distances.push_back((length - 1) * step / kSteps);
  }
  for (const NamedLadder& named : ladders) {
    std::vector<double> seen[2];
    for (const int which : {0, 1}) {
      report::Series series = palette.series(named.name);
      for (const std::int64_t d : distances) {
        seen[which].push_back(
            seen_distance(named.ladder, length - 1, length - 1 - d, pairs[which]));
        series.points.push_back({double(d), seen[which].back()});
      }
      charts[which].series.push_back(std::move(series));
    }
    one_curve = one_curve && seen[0] == seen[1];
    for (std::size_t i = 0; i < distances.size(); ++i) {
      const double fast = seen[0][i];
      const double slow = seen[1][i];
      table.rows.push_back({named.name, cat(distances[i]), number(fast), number(slow)});
      if (i == 0 || i % (kSteps / 4) != 0) continue;
      few.rows.push_back({named.name, cat(distances[i]), fixed(fast, 1), fixed(slow, 1)});
    }
    list.push_back({{"method", named.name},
                    {"distance", distances},
                    {"fastest_pair", seen[0]},
                    {"slowest_pair", seen[1]}});
  }
  const char* note =
      "A line above the window meets distances that the model never saw; one that bends keeps near "
      "tokens where they are.";
  if (one_curve) {
    charts[0].title = "How far away each token seems";
    charts[0].x.label = "how far away it is, in tokens";
    charts[0].y.label = "how far away it seems";
    add_chart(result, "distance", std::move(charts[0]), note);
  } else {
    add_chart(result, "distance-fast", std::move(charts[0]), note);
    add_chart(result, "distance-slow", std::move(charts[1]), note);
  }
  result.json["geometry"] = geometry_fields(g);
  result.json["length"] = length;
  result.data = std::move(table);
  result.page = result.terminal = {std::move(few)};
  return result;
}

namespace {

// Steps of a value that holds from one length of the sequence to the next. name: its key in JSON.
TheoryFigure steps_figure(const Geometry& g, const std::vector<NamedLadder>& ladders,
                          const std::string& name, const std::string& title, const char* file,
                          double (*value_of)(const Rung&), double least, const char* note) {
  TheoryFigure result;
  report::DataTable table = new_table(title, {"method", "up to", name});
  report::LineChart chart =
      curve_chart(g, title, {"tokens in the sequence", report::Spacing::linear}, name);
  chart.y.include = {least};
  report::Palette palette;
  ordered_json& list = result.json["methods"] = ordered_json::array();
  for (const NamedLadder& named : ladders) {
    report::Series series = palette.series(named.name);
    ordered_json steps = ordered_json::array();
    const std::vector<Rung>& rungs = named.ladder.rungs();
    double from = 0;
    for (std::size_t i = 0; i < rungs.size(); ++i) {
      const double value = value_of(rungs[i]);
      if (i + 1 < rungs.size() && value_of(rungs[i + 1]) == value) continue;
      const auto length = double(rungs[i].length);
      series.points.push_back({from, value});
      series.points.push_back({length, value});
      from = length;
      table.rows.push_back({named.name, cat(rungs[i].length), significant(value, 5)});
      steps.push_back({{"up_to", rungs[i].length}, {name, value}});
    }
    chart.series.push_back(std::move(series));
    list.push_back({{"method", named.name}, {"steps", std::move(steps)}});
  }
  result.json["geometry"] = geometry_fields(g);
  set_table(result, std::move(table));
  add_chart(result, file, std::move(chart), note);
  return result;
}

}  // namespace

TheoryFigure ladder_figure(const Geometry& g, const std::vector<NamedLadder>& ladders) {
  TheoryFigure result = steps_figure(
      g, ladders, "scale", "Scale in force", "ladder",
      [](const Rung& rung) { return rung.plan.extension().scale; }, 0,
      "Lower is closer to the model as it was trained; left of the window only methods that "
      "grow are at 1.");
  result.title = "The scale in force at each length";
  result.words = cat(geometry_text(g),
                     "\nA static plan has one scale from the first token on. One that grows has "
                     "scale 1 up to the window. With a near part the scale is that of far keys.\n");
  return result;
}

TheoryFigure sharpness_figure(const Geometry& g, const std::vector<NamedLadder>& ladders) {
  TheoryFigure result = steps_figure(
      g, ladders, "sharpness", "Queries are multiplied by", "sharpness",
      [](const Rung& rung) { return rung.sharpness; }, 1,
      "At 1 queries are those of the model. The more keys there are, the more attention would "
      "spread over them.");
  result.title = "How much queries are sharpened at each length";
  result.words =
      cat(geometry_text(g), "\nBeyond the window of L tokens, up to the n where a rung ends: ",
          "(ln n / ln L)^(G log2(n / L)), G being the parameter sharpen.\n");
  return result;
}

TheoryFigure bound_figure(const Geometry& g, const std::vector<NamedPlan>& plans,
                          std::int64_t length) {
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
  report::LineChart whole =
      curve_chart(g, "B(m), all pairs", {"distance m", report::Spacing::log, true}, "B(m)");
  report::LineChart middle = whole;
  whole.title = "B(m), all pairs: the lowest in each sixth of an octave";
  middle.title = "Swing of B(m), middle pairs alone: highest minus lowest in each half octave";
  middle.y.label = "swing of B(m)";
  std::vector<std::pair<std::int64_t, std::string>> roots;
  const bool few = plans.size() <= 3;  // more bands would cover each other
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
    table.rows.push_back({c.name, number(plan.extension().scale),
                          negative ? cat(*negative) : cat("none below ", length),
                          significant(o.variation, 5), significant(o.spread, 4)});
    list.push_back({{"method", c.name},
                    {"scale", plan.extension().scale},
                    {"first_negative", negative ? ordered_json(*negative) : ordered_json()},
                    {"middle_variation", o.variation},
                    {"middle_spread", o.spread}});
    const std::int64_t from = std::min(g.train_length, length) / 64;
    whole.series.push_back(
        envelope(palette.series(c.name), sum, from, few ? Shown::band : Shown::lowest));
    middle.series.push_back(envelope(palette.series(c.name), part, from, Shown::swing));
    if (!negative) continue;
    whole.series.back().root = {double(*negative), 0};
    roots.emplace_back(*negative, c.name);
  }
  result.json["geometry"] = geometry_fields(g);
  result.json["length"] = length;
  set_table(result, std::move(table));
  std::sort(roots.begin(), roots.end());
  const auto shown = [](const auto& root) { return cat(root.second, " ", root.first); };
  const std::string order = joined(mapped(roots, shown), ", ");
  add_chart(
      result, "bound", std::move(whole),
      cat("Where a line falls below 0, a random token can be ahead of a similar one. The dots "
          "on the zero line are the first such distances: ",
          order.empty() ? "none" : order, few ? ". The band reaches to the highest value." : "."));
  add_chart(result, "bound-middle", std::move(middle),
            "Lower and later is better: small swings mean a steady sense of distance.");
  return result;
}

TheoryFigure roots_figure(const Geometry& g, const std::vector<double>& scales,
                          const std::vector<PlanGroup>& groups, std::int64_t length) {
  const std::vector<std::string> names = mapped(groups.front().plans, &NamedPlan::name);
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
  extend(table.header, names);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    std::vector<std::string> row = {number(scales[i])};
    for (const auto& of : roots) row.push_back(of[i] == kNoRoot ? "none" : cat(of[i]));
    table.rows.push_back(std::move(row));
  }
  report::LineChart chart{.title = "First negative m of B(m) against the scale",
                          .x = {"scale"},
                          .y = {"first negative m", report::Spacing::log},
                          .dots = scales.size() <= 24};
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
      std::vector<int> order;  // 1: the first is ahead, -1: the second is
      ordered_json at = ordered_json::array();
      int before = 0;  // who was ahead last; equal roots do not count
      for (std::size_t i = 0; i < scales.size(); ++i) {
        const int now = int(roots[a][i] > roots[b][i]) - int(roots[a][i] < roots[b][i]);
        order.push_back(now);
        if (now * before < 0) at.push_back({scales[i - 1], scales[i]});
        if (now != 0) before = now;
      }
      const auto ahead = std::count(order.begin(), order.end(), 1);
      const auto equal = std::count(order.begin(), order.end(), 0);
      pairs.push_back({{"method", names[a]},
                       {"against", names[b]},
                       {"flips", at},
                       {"ahead", ahead},
                       {"equal", equal}});
      if (at.empty()) continue;
      flips.rows.push_back({names[a], names[b], cat(at.size()), cat(ahead, " of ", scales.size()),
                            cat(equal), runs_text(scales, order)});
    }
  }
  result.json["geometry"] = geometry_fields(g);
  result.json["length"] = length;
  result.json["scales"] = scales;
  result.data = table;
  result.page = {flips, table};
  result.terminal = {std::move(table), std::move(flips)};
  add_chart(result, "bound-scales", std::move(chart), "Higher is farther.");
  return result;
}

}  // namespace mrrope::theory
