// SPDX-License-Identifier: Apache-2.0
#include "tune/sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "base/text_table.h"
#include "mrrope/error.h"

namespace mrrope {

using nlohmann::ordered_json;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string beta_text(double value) {
  return std::isfinite(value) ? significant(value, 3) : std::string("inf");
}

std::string cell(const SweepPoint* point) {
  if (!point || point->perplexity.n == 0) return "-";
  const Estimate& e = point->perplexity;
  return cat(fixed(e.value, 3), e.n > 1 ? cat(" +-", fixed(e.error, 3)) : std::string());
}

std::string row_name(const SweepPoint& p) { return cat(p.method, " ", p.low, "..", p.high); }

}  // namespace

BetaInterval beta_fast_of(const Geometry& geometry, int low) {
  const std::vector<double> turns = rotations_in_window(geometry);
  const std::size_t next = std::min(std::size_t(low) + 1, turns.size() - 1);
  return {turns[next], low == 0 ? kInfinity : turns[std::size_t(low)]};
}

BetaInterval beta_slow_of(const Geometry& geometry, int high) {
  const std::vector<double> turns = rotations_in_window(geometry);
  // Borders past the last pair are moved to it.
  const bool last = std::size_t(high) + 1 >= turns.size();
  return {last ? 0 : turns[std::size_t(high)], turns[std::size_t(high) - 1]};
}

std::string beta_fast_text(const Geometry& g, int low) {
  const BetaInterval b = beta_fast_of(g, low);
  return cat("(", beta_text(b.from), ", ", beta_text(b.to), std::isfinite(b.to) ? "]" : ")");
}

std::string beta_slow_text(const Geometry& g, int high) {
  const BetaInterval b = beta_slow_of(g, high);
  return cat(b.from > 0 ? "[" : "(", beta_text(b.from), ", ", beta_text(b.to), ")");
}

std::vector<MethodUnderTest> sweep_methods(const Geometry& geometry, const SweepRequest& request,
                                           std::vector<SweepPoint>& points) {
  if (request.low.empty() && request.high.empty()) {
    throw Error(ErrorKind::usage, "no border to sweep", "give --low 5..15, --high 30..45, or both");
  }
  if (request.methods.empty())
    throw Error(ErrorKind::usage, "no method to sweep", "give --methods uni,pro");
  if (request.ctx <= geometry.train_length) {
    throw Error(
        ErrorKind::usage,
        cat(request.ctx, " tokens lie inside the trained window of ", geometry.train_length),
        cat("give --ctx above ", geometry.train_length));
  }
  const auto or_own = [](const std::vector<int>& given) {
    std::vector<std::optional<int>> all(given.begin(), given.end());
    if (all.empty()) all.push_back(std::nullopt);
    return all;
  };
  std::vector<MethodUnderTest> rows;
  for (const std::string& method : request.methods) {
    if (!find_method(method).takes_borders) {
      throw Error(ErrorKind::usage, cat("method ", method, " has no borders to sweep"),
                  "give yarn, uni, pro or power");
    }
    for (const auto& low : or_own(request.low)) {
      for (const auto& high : or_own(request.high)) {
        if (low && high && *low >= *high) continue;
        Extension e;
        e.method = method;
        e.scale = request.headroom * double(request.ctx) / double(geometry.train_length);
        e.parameters.low = low;
        e.parameters.high = high;
        const Plan plan = make_plan(geometry, e);
        const Boundaries b = plan.boundaries();
        points.push_back({method, b.low, b.high, {}});
        rows.push_back({row_name(points.back()), make_ladder(plan, request.ctx)});
      }
    }
  }
  if (rows.empty())
    throw Error(ErrorKind::usage, "every low lies at or past every high",
                "give --low below --high");
  return rows;
}

SweepResults run_sweep(TimelineModel& model, const SweepRequest& request,
                       const std::vector<Document>& documents, RunFolder& folder,
                       Progress& progress) {
  SweepResults results{request, model.facts().geometry, documents.size(), {}};
  const std::vector<MethodUnderTest> rows =
      sweep_methods(results.geometry, request, results.points);
  PerplexityOptions options;
  options.lengths = {request.ctx};
  options.kl_positions = 0;
  const PerplexityResults measured =
      run_perplexity(model, rows, documents, options, folder, progress);
  for (std::size_t i = 0; i < results.points.size(); ++i) {
    results.points[i].perplexity = measured.rows[i].cells.back().perplexity;
  }
  folder.finish(results_text(to_json(results)), {progress.seconds(), progress.computed()});
  return results;
}

const SweepPoint* SweepResults::at(const std::string& method, std::optional<int> low,
                                   std::optional<int> high) const {
  for (const SweepPoint& p : points) {
    if (p.method == method && (!low || p.low == *low) && (!high || p.high == *high)) return &p;
  }
  return nullptr;
}

ordered_json to_json(const SweepResults& results) {
  const auto number_or_null = [](double value) {
    return std::isfinite(value) ? ordered_json(value) : ordered_json();
  };
  ordered_json out = {{"task", "sweep"},
                      {"length", results.request.ctx},
                      {"headroom", results.request.headroom},
                      {"documents", results.documents},
                      {"points", ordered_json::array()}};
  for (const SweepPoint& p : results.points) {
    const BetaInterval fast = beta_fast_of(results.geometry, p.low);
    const BetaInterval slow = beta_slow_of(results.geometry, p.high);
    out["points"].push_back({{"method", p.method},
                             {"low", p.low},
                             {"high", p.high},
                             {"beta_fast", {number_or_null(fast.from), number_or_null(fast.to)}},
                             {"beta_slow", {number_or_null(slow.from), number_or_null(slow.to)}},
                             {"metric", "perplexity"},
                             {"value", number_or_null(p.perplexity.value)},
                             {"stderr", number_or_null(p.perplexity.error)},
                             {"n", p.perplexity.n}});
  }
  return out;
}

std::string to_text(const SweepResults& results) {
  const SweepRequest& r = results.request;
  const Geometry& g = results.geometry;
  std::string text =
      cat("Perplexity of the first ", length_text(r.ctx), " tokens, ", results.documents,
          " documents (window ", length_text(g.train_length), "):\n");
  if (!r.low.empty() && !r.high.empty()) {
    for (const std::string& method : r.methods) {
      std::vector<TextRow> table = {{method, "beta_fast"}, {"", "beta_slow"}};
      for (const int high : r.high) {
        table[0].push_back(cat("high ", high));
        table[1].push_back(beta_slow_text(g, high));
      }
      for (const int low : r.low) {
        TextRow row = {cat("low ", low), beta_fast_text(g, low)};
        for (const int high : r.high) row.push_back(cell(results.at(method, low, high)));
        table.push_back(std::move(row));
      }
      text += aligned(table);
    }
    return text;
  }
  const bool lows = !r.low.empty();
  std::vector<TextRow> table = {{"low", "beta_fast", "high", "beta_slow"}};
  for (const std::string& method : r.methods) table[0].push_back(method);
  for (const int border : lows ? r.low : r.high) {
    const auto at = [&](const std::string& method) {
      return lows ? results.at(method, border, std::nullopt)
                  : results.at(method, std::nullopt, border);
    };
    // The border that is not swept is the same for all methods: they share its rule.
    const SweepPoint* first = at(r.methods.front());
    if (!first) continue;
    TextRow row = {cat(first->low), beta_fast_text(g, first->low), cat(first->high),
                   beta_slow_text(g, first->high)};
    for (const std::string& method : r.methods) row.push_back(cell(at(method)));
    table.push_back(std::move(row));
  }
  return text + aligned(table);
}

std::string to_csv(const SweepResults& results) {
  std::string text =
      "method,low,high,beta_fast_above,beta_fast_to,beta_slow_from,beta_slow_below,perplexity,"
      "stderr,n\n";
  for (const SweepPoint& p : results.points) {
    const BetaInterval fast = beta_fast_of(results.geometry, p.low);
    const BetaInterval slow = beta_slow_of(results.geometry, p.high);
    text +=
        cat(p.method, ",", p.low, ",", p.high, ",", fast.from, ",", fast.to, ",", slow.from, ",",
            slow.to, ",", p.perplexity.value, ",", p.perplexity.error, ",", p.perplexity.n, "\n");
  }
  return text;
}

}  // namespace mrrope
