// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <span>

#include "base/random.h"
#include "base/text.h"
#include "eval/stats/statistics.h"
#include "mrrope/theory.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

using nlohmann::ordered_json;

namespace {

// About 96 of them, each some percent after the one before; the window is one.
std::vector<std::int64_t> distances_to(std::int64_t longest, std::int64_t window) {
  std::vector<std::int64_t> out;
  constexpr int kSteps = 96;
  for (int i = 0; i <= kSteps; ++i) {
    out.push_back(std::llround(std::pow(double(longest), double(i) / kSteps)));
  }
  out.push_back(window);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  out.erase(std::remove_if(out.begin(), out.end(), [&](auto d) { return d > longest; }), out.end());
  return out;
}

// A query and an earlier key of the same layer and head, drawn at random.
PairProduct drawn_product(const Capture& capture, const Geometry& g, Random& random) {
  const CapturedLayer& layer = capture.layers[random.below(capture.layers.size())];
  const auto head = random.below(std::uint64_t(layer.heads));
  const auto kv_head = head / std::uint64_t(layer.heads / layer.kv_heads);
  const auto later = 1 + random.below(std::uint64_t(capture.tokens) - 1);
  const auto earlier = random.below(later);
  const auto row = std::size_t(layer.row);
  const float* q = layer.queries.data() + (later * std::uint64_t(layer.heads) + head) * row;
  const float* k = layer.keys.data() + (earlier * std::uint64_t(layer.kv_heads) + kv_head) * row;
  PairProduct p = pair_product({q, row}, {k, row}, pair_count(g), g.pairing);
  const double scale = 1 / std::sqrt(double(layer.row));
  for (double& x : p.re) x *= scale;
  for (double& x : p.im) x *= scale;
  return p;
}

struct Curve {
  std::vector<double> mean, error, spread;   // of the pairs of each distance
  std::vector<double> pooled, pooled_error;  // of all pairs, turned to each distance
  std::vector<double> beyond;                // every score past the window
};

}  // namespace

TheoryFigure attention_figure(const Geometry& g, const std::vector<NamedPlan>& plans,
                              const Capture& capture, const AttentionRequest& request) {
  const auto longest = std::int64_t(reach_of(g, plans));
  const Plan original = make_plan(g, Extension{});
  const int low = std::min(original.boundaries().low, pair_count(g));
  const int high = std::min(original.boundaries().high, pair_count(g));
  const std::vector<std::int64_t> distances = distances_to(longest, g.train_length);
  // Drawn separately for each distance, the same for every plan.
  std::vector<PairProduct> drawn;
  for (const std::int64_t d : distances) {
    Random random(request.seed * 1000003 + std::uint64_t(d));
    for (int i = 0; i < request.pairs; ++i) drawn.push_back(drawn_product(capture, g, random));
  }
  const auto own = [&](std::size_t d) {  // those of one distance
    return std::span(drawn).subspan(d * std::size_t(request.pairs), std::size_t(request.pairs));
  };
  std::vector<double> inside;  // the original's scores within the window
  for (std::size_t d = 0; d < distances.size() && distances[d] <= g.train_length; ++d) {
    const Turn turn = turn_at(original.theta(), low, high, double(distances[d]));
    for (const PairProduct& p : own(d)) inside.push_back(score_at(p, turn));
  }
  std::vector<Curve> curves(plans.size());
  for (std::size_t c = 0; c < plans.size(); ++c) {
    const Plan& plan = plans[c].plan;
    const double heat = plan.attention_scale() * plan.attention_scale();
    Curve& curve = curves[c];
    for (std::size_t d = 0; d < distances.size(); ++d) {
      const Turn turn = turn_at(plan.theta(), low, high, double(distances[d]));
      const auto scores = [&](std::span<const PairProduct> products) {
        std::vector<double> list;
        for (const PairProduct& p : products) list.push_back(heat * score_at(p, turn));
        return list;
      };
      const std::vector<double> here = scores(own(d));
      const eval::Estimate e = eval::mean(here);
      curve.mean.push_back(e.value);
      curve.error.push_back(e.error);
      curve.spread.push_back(e.error * std::sqrt(double(here.size())));
      const eval::Estimate all = eval::mean(scores(drawn));
      curve.pooled.push_back(all.value);
      curve.pooled_error.push_back(all.error);
      if (distances[d] > g.train_length) {
        curve.beyond.insert(curve.beyond.end(), here.begin(), here.end());
      }
    }
  }

  TheoryFigure result;
  result.title = "Attention scores of the middle pairs against distance";
  std::string layers;
  for (const CapturedLayer& l : capture.layers) layers += cat(layers.empty() ? "" : ", ", l.layer);
  result.words = cat(
      "Queries and keys of layers ", layers, " before rotation, from ", capture.tokens,
      " tokens of text; ", request.pairs,
      " seeded pairs of a token and an earlier one per distance, the same for every ",
      "plan, turned to ", distances.size(), " distances up to ", longest, ". Middle: pairs ", low,
      " to ", high - 1, " of ", pair_count(g), ".\n",
      "Falls until: the last distance before the mean of all ", drawn.size(), " pairs is above ",
      "its lowest by more than two standard errors. KS: largest difference between the "
      "distributions of a plan's scores past ",
      "the window (", g.train_length, ") and the original's inside it.\n",
      "New angles: pairs that meet angles at ", longest,
      " tokens which they never made in training.\n");
  report::DataTable table;
  table.caption = "Scores";
  table.header = {"method",           "scale",
                  "falls until",      "KS past the window",
                  "mean spread",      "pairs with new angles",
                  "new angles, turns"};
  table.text_columns = 1;
  report::LineChart chart;
  chart.title = "Mean score of the middle pairs";
  chart.x = {"distance", report::Spacing::log, true};
  chart.y = {"score, middle pairs", report::Spacing::linear, false};
  chart.dots = false;
  chart.marks = {{double(g.train_length), cat("window ", length_text(g.train_length))}};
  report::LineChart pooled = chart;
  pooled.title = cat("The same, with all ", drawn.size(), " pairs at every distance");
  report::HeatMap fresh;
  fresh.title = cat("Angles never made in training, at ", longest, " tokens");
  fresh.x_label = "pair, from fast to slow";
  fresh.y_label = "method";
  fresh.shades = report::Shades::amount;
  for (int i = 0; i < pair_count(g); ++i) fresh.columns.push_back(cat(i));
  report::Palette palette;
  ordered_json& list = result.json["plans"] = ordered_json::array();
  for (std::size_t c = 0; c < plans.size(); ++c) {
    const Plan& plan = plans[c].plan;
    const Curve& curve = curves[c];
    const std::int64_t falls = distances[falling_until(curve.pooled, curve.pooled_error)];
    const bool past = !curve.beyond.empty();
    const double ks = past ? kolmogorov_smirnov(curve.beyond, inside) : report::kNothing;
    double spread = 0;
    for (const double s : curve.spread) spread += s / double(curve.spread.size());
    const std::vector<AngleCover> cover = angle_cover(plan, longest);
    std::size_t pairs_with_new = 0;
    double turns = 0;
    fresh.rows.push_back(plans[c].name);
    fresh.values.emplace_back();
    ordered_json shares = ordered_json::array();
    for (const AngleCover& a : cover) {
      pairs_with_new += a.fresh > 1e-9 ? 1 : 0;
      turns += a.fresh;
      fresh.values.back().push_back(a.fresh);
      shares.push_back(a.fresh);
    }
    table.rows.push_back({plans[c].name, number(plan.extension().scale), cat(falls),
                          past ? fixed(ks, 3) : "-", significant(spread, 3), cat(pairs_with_new),
                          significant(turns, 3)});
    report::Series s = palette.series(plans[c].name);
    for (std::size_t i = 0; i < distances.size(); ++i) {
      s.points.push_back({double(distances[i]), curve.mean[i], curve.mean[i] - curve.error[i],
                          curve.mean[i] + curve.error[i]});
    }
    report::Series all = palette.series(plans[c].name);
    for (std::size_t i = 0; i < distances.size(); ++i) {
      all.points.push_back({double(distances[i]), curve.pooled[i],
                            curve.pooled[i] - curve.pooled_error[i],
                            curve.pooled[i] + curve.pooled_error[i]});
    }
    chart.series.push_back(std::move(s));
    pooled.series.push_back(std::move(all));
    list.push_back({{"method", plans[c].name},
                    {"scale", plan.extension().scale},
                    {"falls_until", falls},
                    {"ks", past ? ordered_json(ks) : ordered_json()},
                    {"mean", curve.mean},
                    {"stderr", curve.error},
                    {"spread", curve.spread},
                    {"new_angles", shares}});
  }
  result.json["model"] = request.model;
  result.json["layers"] = layers;
  result.json["tokens"] = capture.tokens;
  result.json["pairs"] = request.pairs;
  result.json["seed"] = request.seed;
  result.json["window"] = g.train_length;
  result.json["distances"] = distances;
  result.data = table;
  result.page = result.terminal = {std::move(table)};
  result.figures.push_back({"Attention", "attention", chart.title,
                            "The band is one standard error over token pairs.", std::move(chart)});
  result.figures.push_back({"Attention", "attention-pooled", pooled.title,
                            "Token pairs differ more than distances do: this mean is steadier.",
                            std::move(pooled)});
  result.figures.push_back({"Attention", "angles", fresh.title, "Share of a turn.",
                            std::vector<report::HeatMap>{std::move(fresh)}});
  return result;
}

}  // namespace mrrope::theory
