// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "eval/results/result_table.h"
#include "theory/curves.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

namespace {

constexpr std::size_t kPooled = 8;  // neighbouring distances

// About 96 of them, each some percent after the one before; the window is one.
std::vector<std::int64_t> distances_to(std::int64_t longest, std::int64_t window) {
  std::set<std::int64_t> out = {window};
  constexpr int kSteps = 96;
  for (int i = 0; i <= kSteps; ++i) {
    out.insert(std::llround(std::pow(double(longest), double(i) / kSteps)));
  }
  out.erase(out.upper_bound(longest), out.end());
  return {out.begin(), out.end()};
}

// Where the means of pooled distances are.
std::vector<std::int64_t> pooled_distances(const std::vector<std::int64_t>& distances) {
  std::vector<std::int64_t> out;
  for (std::size_t d = 0; d < distances.size(); d += kPooled) {
    const std::size_t last = std::min(d + kPooled, distances.size()) - 1;
    out.push_back(std::llround(std::sqrt(double(distances[d]) * double(distances[last]))));
  }
  return out;
}

struct Curve {
  std::vector<double> mean, error, spread;   // of the pairs of each distance
  std::vector<double> pooled, pooled_error;  // of those of pooled distances
  std::vector<double> beyond;                // every score past the window
};

Curve curve_of(const std::vector<std::int64_t>& distances, std::int64_t window,
               const std::vector<double>& scores) {
  const std::size_t per_distance = scores.size() / distances.size();
  Curve curve;
  std::vector<double> pool;
  for (std::size_t d = 0; d < distances.size(); ++d) {
    const auto first = scores.begin() + std::ptrdiff_t(d * per_distance);
    const std::vector<double> here(first, first + std::ptrdiff_t(per_distance));
    const eval::Estimate e = eval::mean(here);
    curve.mean.push_back(e.value);
    curve.error.push_back(e.error);
    curve.spread.push_back(e.error * std::sqrt(double(per_distance)));
    if (distances[d] > window) extend(curve.beyond, here);
    extend(pool, here);
    if ((d + 1) % kPooled != 0 && d + 1 != distances.size()) continue;
    const eval::Estimate pooled = eval::mean(std::exchange(pool, {}));
    curve.pooled.push_back(pooled.value);
    curve.pooled_error.push_back(pooled.error);
  }
  return curve;
}

}  // namespace

AttentionPlaces draw_places(const Geometry& g, const std::vector<LayerHeads>& layers,
                            std::int64_t tokens, const AttentionRequest& request) {
  // The farthest distance leaves a sixteenth of the text to choose from: at the very end all pairs
  // would have the same two tokens.
  const auto farthest = [](std::int64_t length) {
    return std::max<std::int64_t>(1, length - std::max<std::int64_t>(1, length / 16));
  };
  const auto draw = [&](const std::vector<std::int64_t>& distances, std::int64_t length) {
    std::vector<PairPlace> places;
    for (const std::int64_t d : distances) {
      Random random(request.seed * 1000003 + std::uint64_t(d));
      for (int i = 0; i < request.pairs; ++i) {
        const LayerHeads& layer = layers[random.below(layers.size())];
        const auto head = int(random.below(std::uint64_t(layer.heads)));
        const auto key = std::int64_t(random.below(std::uint64_t(length - d)));
        places.push_back({layer.layer, head, key + d, key});
      }
    }
    return places;
  };
  AttentionPlaces out;
  out.tokens = tokens;
  out.distances = distances_to(farthest(tokens), g.train_length);
  out.places = draw(out.distances, tokens);
  out.inside = draw(distances_to(farthest(g.train_length), g.train_length), g.train_length);
  return out;
}

TheoryFigure attention_figure(const Geometry& g, const std::vector<NamedPlan>& plans,
                              const AttentionPlaces& drawn,
                              const std::vector<std::vector<RotatedPair>>& rotated,
                              const std::vector<RotatedPair>& inside,
                              const AttentionRequest& request) {
  const std::vector<std::int64_t>& distances = drawn.distances;
  const std::vector<std::int64_t> pooled_at = pooled_distances(distances);
  const Boundaries middle = make_plan(g, Extension{}).boundaries();
  const int low = std::min(middle.low, pair_count(g));
  const int high = std::min(middle.high, pair_count(g));
  const auto score_of = [&](const RotatedPair& pair) {
    return pair_score(pair.query, pair.key, low, high, g) / std::sqrt(double(pair.query.size()));
  };
  const std::vector<double> original = mapped(inside, score_of);
  std::set<int> looked_at;
  for (const PairPlace& p : drawn.places) looked_at.insert(p.layer);
  const std::string layers = joined(mapped(looked_at, cat<int>), ", ");

  TheoryFigure result;
  result.title = "Attention scores of the middle pairs against distance";
  result.words = cat(
      "Queries and keys of layers ", layers,
      " after rotation, as the model computes them: it reads the same ", drawn.tokens,
      " tokens under each plan; ", request.pairs,
      " seeded pairs of a token and an earlier one per distance, at the same places for every "
      "plan, ",
      distances.size(), " distances up to ", distances.back(),
      ". Scores are those before the softmax, with the plan's temperature. Middle: pairs ", low,
      " to ", high - 1, " of ", pair_count(g),
      ".\nFalls until: the last distance before the mean of ", kPooled,
      " neighbouring distances is above its lowest by more than two standard errors. KS: largest "
      "difference between the distributions of a plan's scores past the window (",
      g.train_length, ") and the original's inside it, where it reads the first ", g.train_length,
      " tokens.\nNew angles: pairs that meet angles at ", drawn.tokens,
      " tokens which they never made in training.\n");
  report::DataTable table =
      new_table("Scores", {"method", "scale", "falls until", "KS past the window", "mean spread",
                           "pairs with new angles", "new angles, turns"});
  report::LineChart chart =
      curve_chart(g, "Mean score of the middle pairs", {"distance", report::Spacing::log, true},
                  "score, middle pairs");
  report::HeatMap fresh;
  fresh.title = cat("Angles never made in training, at ", drawn.tokens, " tokens");
  fresh.x_label = "pair, from fast to slow";
  fresh.y_label = "method";
  fresh.key = "share of a turn";
  fresh.shades = report::Shades::amount;
  for (int i = 0; i < pair_count(g); ++i) fresh.columns.push_back(cat(i));
  std::vector<std::string> without;  // new angles
  report::Palette palette;
  ordered_json& list = result.json["plans"] = ordered_json::array();
  for (std::size_t c = 0; c < plans.size(); ++c) {
    const Plan& plan = plans[c].plan;
    const Curve curve = curve_of(distances, g.train_length, mapped(rotated[c], score_of));
    const std::int64_t falls = pooled_at[falling_until(curve.pooled, curve.pooled_error)];
    const bool past = !curve.beyond.empty();
    const double ks = past ? kolmogorov_smirnov(curve.beyond, original) : report::kNothing;
    double spread = 0;
    for (const double s : curve.spread) spread += s / double(curve.spread.size());
    const std::vector<double> angles = new_angles(plan, drawn.tokens);
    const auto pairs_with_new =
        std::count_if(angles.begin(), angles.end(), [](double share) { return share > 1e-9; });
    const double turns = std::accumulate(angles.begin(), angles.end(), 0.0);
    (pairs_with_new > 0 ? fresh.rows : without).push_back(plans[c].name);
    if (pairs_with_new > 0) fresh.values.push_back(angles);
    table.rows.push_back({plans[c].name, number(plan.extension().scale), cat(falls),
                          past ? fixed(ks, 3) : "-", significant(spread, 3), cat(pairs_with_new),
                          significant(turns, 3)});
    report::Series series = palette.series(plans[c].name);
    for (std::size_t i = 0; i < distances.size(); ++i) {
      const double mean = curve.mean[i];
      series.points.push_back(
          {double(distances[i]), mean, mean - curve.error[i], mean + curve.error[i]});
    }
    chart.series.push_back(std::move(series));
    list.push_back({{"method", plans[c].name},
                    {"scale", plan.extension().scale},
                    {"falls_until", falls},
                    {"ks", past ? ordered_json(ks) : ordered_json()},
                    {"mean", curve.mean},
                    {"stderr", curve.error},
                    {"spread", curve.spread},
                    {"new_angles", angles},
                    {"pooled_mean", curve.pooled},
                    {"pooled_stderr", curve.pooled_error}});
  }
  result.json["model"] = request.model;
  result.json["layers"] = layers;
  result.json["tokens"] = drawn.tokens;
  result.json["pairs"] = request.pairs;
  result.json["seed"] = request.seed;
  result.json["window"] = g.train_length;
  result.json["distances"] = distances;
  result.json["pooled_at"] = pooled_at;
  set_table(result, std::move(table));
  add_chart(result, "attention", std::move(chart),
            cat("A score that still falls past the window tells far from near there. The band is "
                "one standard error over token pairs.",
                without.empty() ? "" : cat(" Without new angles: ", joined(without, ", "), ".")));
  if (fresh.rows.empty()) return result;
  result.figures.push_back({"Attention", "angles", fresh.title,
                            "Dark pairs meet angles that the model never met in training.",
                            std::vector<report::HeatMap>{std::move(fresh)}});
  return result;
}

}  // namespace mrrope::theory
