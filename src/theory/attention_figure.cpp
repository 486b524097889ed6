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
  for (auto& x : p) x *= scale;
  return p;
}

struct Curve {
  std::vector<double> mean, error, spread;   // of the pairs of each distance
  std::vector<double> pooled, pooled_error;  // of more pairs, at Scores::pooled_at
  std::vector<double> beyond;                // every score past the window
};

// What both kinds of this figure show.
struct Scores {
  int low = 0, high = 0;     // the middle
  std::int64_t longest = 0;  // text, in tokens
  std::string layers;
  std::int64_t tokens = 0;  // read
  std::vector<std::int64_t> distances, pooled_at;
  std::vector<double> inside;  // the original's, within the window
  std::vector<Curve> curves;   // per plan
  std::string suffix;          // of titles
  // Words: how the queries and keys were read, the token pairs chosen, their temperature, what
  // is pooled, and where the original was read.
  std::string reading, choice, temperature, pool, original;
};

Scores middle_of(const Geometry& g) {
  const Boundaries b = make_plan(g, Extension{}).boundaries();
  Scores s;
  s.low = std::min(b.low, pair_count(g));
  s.high = std::min(b.high, pair_count(g));
  return s;
}

void add_pairs(Curve& curve, const std::vector<double>& scores, bool past_window) {
  const eval::Estimate e = eval::mean(scores);
  curve.mean.push_back(e.value);
  curve.error.push_back(e.error);
  curve.spread.push_back(e.error * std::sqrt(double(scores.size())));
  if (past_window) extend(curve.beyond, scores);
}

void add_pool(Curve& curve, const std::vector<double>& scores) {
  const eval::Estimate e = eval::mean(scores);
  curve.pooled.push_back(e.value);
  curve.pooled_error.push_back(e.error);
}

TheoryFigure picture_of(const Geometry& g, const std::vector<NamedPlan>& plans,
                        const Scores& scores, const AttentionRequest& request) {
  const std::vector<std::int64_t>& distances = scores.distances;
  TheoryFigure result;
  result.title = cat("Attention scores of the middle pairs against distance", scores.suffix);
  result.words = cat(
      "Queries and keys of layers ", scores.layers, scores.reading, request.pairs,
      " seeded pairs of a token and an earlier one per distance, ", scores.choice, distances.size(),
      " distances up to ", distances.back(), ". ", scores.temperature, "Middle: pairs ", scores.low,
      " to ", scores.high - 1, " of ", pair_count(g),
      ".\nFalls until: the last distance before the mean of ", scores.pool,
      " is above its lowest by more than two standard errors. KS: largest difference between the "
      "distributions of a plan's scores past the window (",
      g.train_length, ") and the original's inside it", scores.original,
      ".\nNew angles: pairs that meet angles at ", scores.longest,
      " tokens which they never made in training.\n");
  report::DataTable table =
      new_table("Scores", {"method", "scale", "falls until", "KS past the window", "mean spread",
                           "pairs with new angles", "new angles, turns"});
  report::LineChart chart =
      curve_chart(g, cat("Mean score of the middle pairs", scores.suffix),
                  {"distance", report::Spacing::log, true}, "score, middle pairs");
  report::HeatMap fresh;
  fresh.title = cat("Angles never made in training, at ", scores.longest, " tokens");
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
    const Curve& curve = scores.curves[c];
    const std::int64_t falls = scores.pooled_at[falling_until(curve.pooled, curve.pooled_error)];
    const bool past = !curve.beyond.empty();
    const double ks = past ? kolmogorov_smirnov(curve.beyond, scores.inside) : report::kNothing;
    double spread = 0;
    for (const double s : curve.spread) spread += s / double(curve.spread.size());
    const std::vector<double> angles = new_angles(plan, scores.longest);
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
                    {"new_angles", angles}});
  }
  result.json["model"] = request.model;
  result.json["layers"] = scores.layers;
  result.json["tokens"] = scores.tokens;
  result.json["pairs"] = request.pairs;
  result.json["seed"] = request.seed;
  result.json["window"] = g.train_length;
  result.json["distances"] = distances;
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

}  // namespace

TheoryFigure attention_figure(const Geometry& g, const std::vector<NamedPlan>& plans,
                              const Capture& capture, const AttentionRequest& request) {
  Scores scores = middle_of(g);
  scores.longest = std::int64_t(reach_of(g, plans));
  scores.tokens = capture.tokens;
  scores.distances = scores.pooled_at = distances_to(scores.longest, g.train_length);
  const std::vector<std::int64_t>& distances = scores.distances;
  const Plan original = make_plan(g, Extension{});
  // Drawn separately for each distance, the same for every plan.
  std::vector<PairProduct> drawn;
  for (const std::int64_t d : distances) {
    Random random(request.seed * 1000003 + std::uint64_t(d));
    for (int i = 0; i < request.pairs; ++i) drawn.push_back(drawn_product(capture, g, random));
  }
  const auto own = [&](std::size_t d) {  // those of one distance
    return std::span(drawn).subspan(d * std::size_t(request.pairs), std::size_t(request.pairs));
  };
  const auto angles_of = [&](const Plan& plan, std::size_t d) {
    return angles_at(plan.theta(), scores.low, scores.high, double(distances[d]));
  };
  for (std::size_t d = 0; d < distances.size() && distances[d] <= g.train_length; ++d) {
    const Angles angles = angles_of(original, d);
    for (const PairProduct& p : own(d)) scores.inside.push_back(score_at(p, angles));
  }
  for (const NamedPlan& c : plans) {
    const double heat = c.plan.attention_scale() * c.plan.attention_scale();
    Curve& curve = scores.curves.emplace_back();
    for (std::size_t d = 0; d < distances.size(); ++d) {
      const Angles angles = angles_of(c.plan, d);
      const auto score = [&](const PairProduct& p) { return heat * score_at(p, angles); };
      add_pairs(curve, mapped(own(d), score), distances[d] > g.train_length);
      add_pool(curve, mapped(drawn, score));
    }
  }
  scores.layers =
      joined(mapped(capture.layers, [](const CapturedLayer& l) { return cat(l.layer); }), ", ");

  scores.reading = cat(" before rotation, from ", capture.tokens, " tokens of text; ");
  scores.choice = "the same for every plan, turned to ";
  scores.pool = cat("all ", drawn.size(), " pairs");
  return picture_of(g, plans, scores, request);
}

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

TheoryFigure attention_run_figure(const Geometry& g, const std::vector<NamedPlan>& plans,
                                  const AttentionPlaces& drawn,
                                  const std::vector<std::vector<RotatedPair>>& rotated,
                                  const std::vector<RotatedPair>& inside,
                                  const AttentionRequest& request) {
  constexpr std::size_t kPooled = 8;  // neighbouring distances
  Scores scores = middle_of(g);
  scores.suffix = ", the model as it runs";
  scores.longest = scores.tokens = drawn.tokens;
  scores.distances = drawn.distances;
  const auto score_of = [&](const RotatedPair& pair) {
    const PairProduct p = pair_product(pair.query, pair.key, pair_count(g), g.pairing);
    double sum = 0;
    for (int i = scores.low; i < scores.high; ++i) sum += p[std::size_t(i)].real();
    return sum / std::sqrt(double(pair.query.size()));
  };
  scores.inside = mapped(inside, score_of);
  const auto per_distance = std::size_t(request.pairs);
  for (std::size_t d = 0; d < scores.distances.size(); d += kPooled) {
    const std::size_t last = std::min(d + kPooled, scores.distances.size()) - 1;
    scores.pooled_at.push_back(
        std::llround(std::sqrt(double(scores.distances[d]) * double(scores.distances[last]))));
  }
  for (const std::vector<RotatedPair>& pairs : rotated) {
    Curve& curve = scores.curves.emplace_back();
    std::vector<double> pool;
    for (std::size_t d = 0; d < scores.distances.size(); ++d) {
      const auto here = mapped(std::span(pairs).subspan(d * per_distance, per_distance), score_of);
      add_pairs(curve, here, scores.distances[d] > g.train_length);
      extend(pool, here);
      if ((d + 1) % kPooled == 0 || d + 1 == scores.distances.size()) {
        add_pool(curve, pool);
        pool.clear();
      }
    }
  }
  std::set<int> layers;
  for (const PairPlace& p : drawn.places) layers.insert(p.layer);
  scores.layers = joined(mapped(layers, cat<int>), ", ");

  scores.reading = cat(" after rotation, as the model computes them: it reads the same ",
                       drawn.tokens, " tokens under each plan; ");
  scores.choice = "at the same places for every plan, ";
  scores.temperature = "Scores are those before the softmax, with the plan's temperature. ";
  scores.pool = cat(kPooled, " neighbouring distances");
  scores.original = cat(", where it reads the first ", g.train_length, " tokens");
  TheoryFigure result = picture_of(g, plans, scores, request);
  result.json["as_it_runs"] = true;
  result.json["pooled_at"] = scores.pooled_at;
  for (std::size_t c = 0; c < plans.size(); ++c) {
    result.json["plans"][c]["pooled_mean"] = scores.curves[c].pooled;
    result.json["plans"][c]["pooled_stderr"] = scores.curves[c].pooled_error;
  }
  return result;
}

}  // namespace mrrope::theory
