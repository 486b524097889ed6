// SPDX-License-Identifier: Apache-2.0
// mrrope theory: the figures of the paper that need no model, from numbers alone.
#include "mrrope/theory.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <numbers>

#include "base/text.h"
#include "cli/app.h"
#include "cli/verbs/theory/output.h"
#include "core/methods.h"
#include "mrrope/error.h"

namespace mrrope::cli {

namespace {

using nlohmann::ordered_json;

constexpr double kUsualScale = 16;  // as in the paper

std::string geometry_text(const Geometry& g) {
  return cat("rotary_dim ", g.rotary_dim, ", base ", g.base, ", window ", g.train_length);
}

ordered_json geometry_fields(const Geometry& g) {
  return {{"rotary_dim", g.rotary_dim}, {"base", g.base}, {"train_length", g.train_length}};
}

// ---- digits

struct DigitsFlags : TheoryFlags {
  std::vector<std::string> positions;
};

void run_digits(const DigitsFlags& flags) {
  const Geometry g = theory_subject(flags.subject).geometry;
  const std::vector<Candidate> plans = theory_plans(flags, g, kUsualScale);
  std::vector<std::int64_t> positions;
  for (const std::string& text : flags.positions) positions.push_back(parse_length(text));
  if (positions.empty()) positions = {1000, 1001, g.train_length, 4 * g.train_length + 1};
  // Every position that some plan is meant for, within what a count can afford.
  double reach = double(g.train_length);
  for (const Candidate& c : plans) {
    reach = std::max(reach, plan_of(c).extension().scale * double(g.train_length));
  }
  const std::int64_t counted = std::int64_t(std::min(reach, double(1 << 20)));

  TheoryResult result;
  result.title = "Positions as digits";
  const double beta = std::pow(g.base, 1.0 / pair_count(g));
  result.words = cat(
      geometry_text(g), ": ", pair_count(g), " digits in radix beta = ", significant(beta, 5),
      " (base^(1/", pair_count(g), ")). A digit of weight w is floor(position / w) mod its radix;",
      " a method multiplies the radix of digit j by lambda_j.\nCollisions: positions below ",
      counted, " with exactly the digits of the one before.\n");
  DataTable summary;
  summary.caption = "Number systems";
  summary.header = {"method",          "scale",       "shape",     "first open digit",
                    "first open pair", "range times", "collisions"};
  summary.text_columns = 3;
  std::vector<HeatMap> maps;
  ordered_json& list = result.json["plans"] = ordered_json::array();
  for (const Candidate& c : plans) {
    const Plan& plan = plan_of(c);
    const std::int64_t lost = colliding_positions(plan, counted);
    summary.rows.push_back({c.name, significant(plan.extension().scale, 6), to_string(plan.shape()),
                            cat(first_open_digit(plan, g.train_length)),
                            cat(first_open_pair(plan, g.train_length)),
                            significant(range_growth(plan), 6), cat(lost)});
    HeatMap map;
    map.title = c.name;
    map.x_label = "digit, from fast to slow";
    map.y_label = "position";
    map.shades = Shades::amount;
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
  DataTable digits;
  digits.caption = "Digits";
  digits.header = {"digit", "turns in the window"};
  digits.text_columns = 0;
  for (const Candidate& c : plans) {
    digits.header.push_back(c.name + " radix");
    for (const std::int64_t m : positions) digits.header.push_back(cat(c.name, " ", m));
  }
  const std::vector<double> turns = rotations_in_window(g);
  for (int j = 0; j < pair_count(g); ++j) {
    std::vector<std::string> row = {cat(j), significant(turns[std::size_t(j)], 4)};
    for (const Candidate& c : plans) {
      row.push_back(significant(digits_of(plan_of(c), 0)[std::size_t(j)].radix, 5));
      for (const std::int64_t m : positions) {
        row.push_back(significant(digits_of(plan_of(c), double(m))[std::size_t(j)].value, 4));
      }
    }
    digits.rows.push_back(std::move(row));
  }
  result.tables = {digits, summary};
  if (flags.csv.empty()) std::swap(result.tables[0], result.tables[1]);
  if (plans.size() > 2 && flags.csv.empty() && flags.html.empty()) result.tables.pop_back();
  result.figures.push_back({"Digits", "digits", "Digits of positions",
                            "Shade: the digit over its radix.", std::move(maps)});
  print_theory(flags, result);
}

// ---- estimate

struct EstimateFlags : TheoryFlags {
  std::vector<double> bases;
  std::string length;
  double bound = 0.05;
};

void run_estimate(const EstimateFlags& flags) {
  const Geometry g = theory_subject(flags.subject).geometry;
  const std::int64_t length =
      flags.length.empty() ? 4 * g.train_length : parse_length(flags.length);
  std::vector<double> bases = flags.bases;
  if (bases.empty()) bases = {100, 1000, 10000, 100000, 500000, 1000000};
  if (flags.bases.empty() && std::find(bases.begin(), bases.end(), g.base) == bases.end()) {
    bases.push_back(g.base);
    std::sort(bases.begin(), bases.end());
  }
  TheoryResult result;
  result.title = "The position that the angles suggest";
  result.words = cat(
      "m-hat = sum over ", pair_count(g),
      " pairs of beta^j (m theta_j mod 2 pi). Linear up to: the ",
      "largest n for which the straight line through the origin that fits 0 .. n-1 best is off by "
      "at ",
      "most ", number(100 * flags.bound),
      " % (root of summed squares over those of m-hat) at n and ",
      "everywhere before.\nThe paper's second form of this sum has beta^-j: its terms then fade ",
      "with j, and the curve stays flat (last column: its largest value).\n");
  LineChart chart;
  chart.title = "Biased position estimate";
  chart.x = {"position", Spacing::linear, true};
  chart.y = {"estimate", Spacing::linear, false};
  chart.dots = false;
  chart.marks = {{double(g.train_length), cat("window ", length_text(g.train_length))}};
  DataTable table;
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
    const LinearRange range = linear_range(estimate, flags.bound);
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
    Series s{cat("base ", number(base)), 1 + colour++ % (kColours - 1), false, {}};
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
  result.json["bound"] = flags.bound;
  result.tables = {std::move(table)};
  result.figures.push_back({"Estimate", "estimate", chart.title, "", std::move(chart)});
  print_theory(flags, result);
}

// ---- factors

void run_factors(const TheoryFlags& flags) {
  const Geometry g = theory_subject(flags.subject).geometry;
  TheoryResult result;
  result.title = "Factors and radix multipliers";
  result.words = cat(
      geometry_text(g),
      "\nShape: how lambda changes inside the middle. YaRN's ramp over pair indices, which engines "
      "run, is progressive; the ramp over rotations, which the paper's proof is about, is "
      "regressive below scale 32 (beta_fast / beta_slow).\n");
  std::vector<double> scales = {16, 4};
  if (flags.extension.scale || !flags.extension.ctx.empty()) scales = {0};
  DataTable shapes;
  shapes.caption = "Shapes";
  shapes.header = {"method", "scale", "shape", "low", "high", "range times", "largest lambda"};
  shapes.text_columns = 3;
  DataTable pairs;
  pairs.caption = "Cumulative factor s_d and lambda_d per pair";
  pairs.header = {"method", "scale", "pair", "factor", "lambda"};
  pairs.text_columns = 1;
  ordered_json& list = result.json["plans"] = ordered_json::array();
  for (const double scale : scales) {
    const std::vector<Candidate> plans = theory_plans(flags, g, scale);
    LineChart factor;
    factor.x = {"pair, from fast to slow", Spacing::linear, false};
    factor.y = {"cumulative factor", Spacing::log, false};
    factor.dots = false;
    LineChart lambda = factor;
    lambda.y = {"lambda", Spacing::linear, false};
    Palette palette;
    std::string at = scale > 0 ? cat(" at scale ", number(scale)) : std::string();
    for (const Candidate& c : plans) {
      const Plan& plan = plan_of(c);
      const std::vector<double> lambdas = plan.lambda();
      const std::string s = number(plan.extension().scale);
      shapes.rows.push_back({c.name, s, to_string(plan.shape()), cat(plan.boundaries().low),
                             cat(plan.boundaries().high), significant(range_growth(plan), 6),
                             fixed(*std::max_element(lambdas.begin(), lambdas.end()), 5)});
      Series sf = palette.series(c.name);
      Series sl = sf;
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
    factor.title = "Cumulative factor per pair" + at;
    lambda.title = "Radix multiplier lambda per digit" + at;
    result.figures.push_back({"Factors", "factors", factor.title, "", factor});
    result.figures.push_back({"Factors", "lambdas", lambda.title, "", lambda});
  }
  result.json["geometry"] = geometry_fields(g);
  if (flags.csv.empty()) {
    result.tables = {std::move(shapes)};
  } else {
    result.tables = {std::move(pairs), std::move(shapes)};
  }
  print_theory(flags, result);
}

// ---- bound

struct BoundFlags : TheoryFlags {
  std::string length;
  std::string reach;
};

// The mark of a curve that never goes below 0 here.
std::string negative_text(const std::optional<std::int64_t>& m, std::int64_t limit) {
  return m ? cat(*m) : cat("none below ", limit);
}

void run_bound(const BoundFlags& flags) {
  const Geometry g = theory_subject(flags.subject).geometry;
  const std::vector<Candidate> plans = theory_plans(flags, g, kUsualScale);
  double reach = double(g.train_length);
  for (const Candidate& c : plans) {
    reach = std::max(reach, plan_of(c).extension().scale * double(g.train_length));
  }
  const std::int64_t length = flags.length.empty() ? std::int64_t(std::min(reach, double(1 << 20)))
                                                   : parse_length(flags.length);
  const std::int64_t wanted = flags.reach.empty() ? 0 : parse_length(flags.reach);
  TheoryResult result;
  result.title = "How far similar tokens stay ahead of random ones";
  result.words =
      cat(geometry_text(g), "\nB(m) = sum over pairs of cos(m theta_j); first negative m below ",
          length, ". Middle: the same sum over the pairs from low to high alone, with its total ",
          "variation and standard deviation over 0 .. ", length - 1, ".\n",
          "Error of a sum: below 1e-8 up to a million positions (double).\n");
  DataTable table;
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
  LineChart whole;
  whole.title = "B(m), all pairs";
  whole.x = {"distance m", Spacing::log, true};
  whole.y = {"B(m)", Spacing::linear, false};
  whole.dots = false;
  whole.marks = {{double(g.train_length), cat("window ", length_text(g.train_length))}};
  LineChart middle = whole;
  middle.title = "B(m), middle pairs alone";
  Palette palette;
  ordered_json& list = result.json["plans"] = ordered_json::array();
  for (const Candidate& c : plans) {
    const Plan& plan = plan_of(c);
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
    Series s = palette.series(c.name);
    Series m = s;
    for (std::size_t i = 1; i < sum.size(); ++i) {
      s.points.push_back({double(i), sum[i]});
      m.points.push_back({double(i), part[i]});
    }
    whole.series.push_back(std::move(s));
    middle.series.push_back(std::move(m));
  }
  result.json["geometry"] = geometry_fields(g);
  result.json["length"] = length;
  result.tables = {std::move(table)};
  result.figures.push_back({"Bound", "bound", whole.title, "", std::move(whole)});
  result.figures.push_back({"Bound", "bound-middle", middle.title,
                            "Fewer and smaller swings mean a steadier sense of distance.",
                            std::move(middle)});
  print_theory(flags, result);
}

}  // namespace

void add_theory(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("theory", "The figures of the paper, from your own model");
  verb->require_subcommand(1);

  auto digits = std::make_shared<DigitsFlags>();
  CLI::App* d = verb->add_subcommand("digits", "Positions as digits of a mixed radix");
  add_theory_subject(*d, *digits);
  d->add_option("--positions", digits->positions, "Positions to write out")
      ->type_name("M,...")
      ->delimiter(',');
  add_theory_output(*d, *digits);
  d->footer(
      "Examples:\n  mrrope theory digits llama2 --methods none,pi,pro --scale 16\n"
      "  mrrope theory digits model.gguf --methods pro --ctx 32k --csv digits.csv");
  d->callback([digits] { run_digits(*digits); });

  auto estimate = std::make_shared<EstimateFlags>();
  CLI::App* e = verb->add_subcommand("estimate", "The position that the angles suggest, by base");
  add_subject(*e, estimate->subject);
  e->add_option("--bases", estimate->bases, "Bases to compare")->type_name("B,...")->delimiter(',');
  e->add_option("--length", estimate->length, "Positions from 0 to here; 4 windows")
      ->type_name("LENGTH");
  e->add_option("--bound", estimate->bound, "Relative error of the straight line")
      ->type_name("X")
      ->capture_default_str();
  add_theory_output(*e, *estimate);
  e->footer("Examples:\n  mrrope theory estimate llama2 --bases 1e4,5e5 --svg estimate.svg");
  e->callback([estimate] { run_estimate(*estimate); });

  auto factors = std::make_shared<TheoryFlags>();
  CLI::App* f = verb->add_subcommand("factors", "Cumulative factor and lambda of every method");
  add_theory_subject(*f, *factors);
  add_theory_output(*f, *factors);
  f->footer(
      "Examples:\n  mrrope theory factors llama2 --html factors.html    # scales 16 and 4\n"
      "  mrrope theory factors model.gguf --methods yarn,pro --ctx 32k --svg factors.svg");
  f->callback([factors] { run_factors(*factors); });

  auto bound = std::make_shared<BoundFlags>();
  CLI::App* b = verb->add_subcommand("bound", "The sum of cosines, and where it turns negative");
  add_theory_subject(*b, *bound);
  b->add_option("--length", bound->length, "Distances from 0 to here; else the longest plan's")
      ->type_name("LENGTH");
  b->add_option("--reach", bound->reach, "Also the least scale, and base, that reach this length")
      ->type_name("LENGTH");
  add_theory_output(*b, *bound);
  b->footer(
      "Examples:\n  mrrope theory bound llama2 --scale 16\n"
      "  mrrope theory bound model.gguf --methods yarn,pro --ctx 64k --reach 64k");
  b->callback([bound] { run_bound(*bound); });
  add_theory_attention(*verb);
  add_theory_claims(*verb);
}

}  // namespace mrrope::cli
