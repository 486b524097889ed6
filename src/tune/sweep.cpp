// SPDX-License-Identifier: Apache-2.0
#include "tune/sweep.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>

#include "base/json.h"
#include "base/text.h"
#include "base/text_table.h"
#include "core/methods.h"
#include "eval/run/method_under_test.h"
#include "mrrope/error.h"

namespace mrrope::tune {

using nlohmann::ordered_json;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMostPairs = 1 << 20;

std::string beta_text(double value) {
  return std::isfinite(value) ? significant(value, 3) : std::string("inf");
}

std::string cell(const SweepPoint* point) {
  if (!point || point->perplexity.n == 0) return "-";
  const eval::Estimate& e = point->perplexity;
  return cat(fixed(e.value, 3), e.n > 1 ? cat(" +-", fixed(e.error, 3)) : std::string());
}

std::string row_name(const SweepPoint& p) { return cat(p.method, " ", p.low, "..", p.high); }

// Turns of a pair in the window. A ramp may end past the last pair: plain RoPE goes on there, as in
// pair_with_turns().
double turns_of(const Geometry& g, int pair) {
  const std::vector<double> turns = rotations_in_window(g);
  const int last = int(turns.size()) - 1;
  if (pair <= last) return turns[std::size_t(pair)];
  return turns.back() * std::pow(g.base, -2.0 * (pair - last) / g.rotary_dim);
}

// The largest high that a method takes.
int highest_boundary(const Geometry& g, const std::string& method) {
  return method_row(method).needs_middle ? pair_count(g) - 1 : g.rotary_dim - 1;
}

BetaInterval beta_fast_of(const Geometry& g, int low) {
  return {turns_of(g, low + 1), low == 0 ? kInfinity : turns_of(g, low)};
}

// The largest possible high takes every smaller beta too.
BetaInterval beta_slow_of(const Geometry& g, const std::string& method, int high) {
  const bool last = high >= highest_boundary(g, method);
  return {last ? 0 : turns_of(g, high), high == 0 ? kInfinity : turns_of(g, high - 1)};
}

ordered_json identity_of(TimelineModel& model, const SweepRequest& request,
                         const std::vector<eval::Document>& documents) {
  ordered_json run;
  run["task"] = "sweep";
  run["model"] = eval::Target(model).identity();
  run["engine"] = model.description();
  run["settings"] = {{"ctx", request.ctx},
                     {"headroom", request.headroom},
                     {"methods", request.methods},
                     {"low", request.low},
                     {"high", request.high}};
  run["documents"] = ordered_json::array();
  for (const eval::Document& d : documents) run["documents"].push_back({{"id", d.id}});
  return run;
}

}  // namespace

std::vector<int> parse_pairs(const std::string& text, int step, const std::string& flag) {
  std::vector<int> out;
  if (text.empty()) return out;
  const auto refuse = [&] {
    throw Error(ErrorKind::usage, cat("'", text, "' is not a range of pairs"),
                cat("write ", flag, " 5..15, or one number"));
  };
  const auto number_at = [&](std::size_t begin, std::size_t end) {
    int value = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    if (error != std::errc() || stop != text.data() + end || value < 0) refuse();
    return value;
  };
  const std::size_t dots = text.find("..");
  const int first = number_at(0, std::min(dots, text.size()));
  const int last = dots == std::string::npos ? first : number_at(dots + 2, text.size());
  if (last < first || last > kMostPairs) refuse();
  for (std::int64_t pair = first; pair <= last; pair += step) out.push_back(int(pair));
  return out;
}

std::string text_of_beta_fast(const SweepPoint& p) {
  const BetaInterval& b = p.beta_fast;
  return cat("(", beta_text(b.from), ", ", beta_text(b.to), std::isfinite(b.to) ? "]" : ")");
}

std::string text_of_beta_slow(const SweepPoint& p) {
  const BetaInterval& b = p.beta_slow;
  return cat(b.from > 0 ? "[" : "(", beta_text(b.from), ", ", beta_text(b.to), ")");
}

std::vector<eval::MethodUnderTest> sweep_methods(const Geometry& geometry,
                                                 const SweepRequest& request,
                                                 std::vector<SweepPoint>& points) {
  if (request.low.empty() && request.high.empty()) {
    throw Error(ErrorKind::usage, "no boundary to sweep",
                "give --low 5..15, --high 30..45, or both");
  }
  if (request.methods.empty())
    throw Error(ErrorKind::usage, "no method to sweep", "give --methods uni,pro");
  if (request.ctx <= geometry.train_length) {
    throw Error(ErrorKind::usage,
                cat(request.ctx, " tokens fit in the trained window of ", geometry.train_length),
                cat("give --ctx above ", geometry.train_length));
  }
  const auto or_own = [](const std::vector<int>& given) {
    std::vector<std::optional<int>> all(given.begin(), given.end());
    if (all.empty()) all.push_back(std::nullopt);
    return all;
  };
  std::vector<eval::MethodUnderTest> rows;
  for (const std::string& method : request.methods) {
    if (method.find(':') != std::string::npos || !find_method(method).takes_borders) {
      throw Error(ErrorKind::usage, cat("method ", method, " has no boundaries to sweep"),
                  "give yarn, regressive, uni, pro or power");
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
        points.push_back({method,
                          b.low,
                          b.high,
                          beta_fast_of(geometry, b.low),
                          beta_slow_of(geometry, method, b.high),
                          {}});
        rows.push_back({row_name(points.back()), make_ladder(plan, request.ctx)});
      }
    }
  }
  if (rows.empty())
    throw Error(ErrorKind::usage, "no low is below a high", "give --low below --high");
  return rows;
}

SweepResults run_sweep(TimelineModel& model, const SweepRequest& request,
                       const std::vector<eval::Document>& documents, const std::string& folder,
                       const eval::RunInfo& info, eval::Progress& progress) {
  const Geometry& geometry = model.facts().geometry;
  SweepResults results{request, geometry.train_length, documents.size(), {}, {}};
  const std::vector<eval::MethodUnderTest> rows = sweep_methods(geometry, request, results.points);
  const auto open = [&](const std::filesystem::path& path) {
    return folder.empty() ? eval::RunFolder() : eval::RunFolder(path, info);
  };
  eval::RunFolder sweep = open(folder);
  eval::RunFolder ppl = open(std::filesystem::path(folder) / "ppl");
  sweep.begin(identity_of(model, request, documents));
  eval::PerplexityOptions options;
  options.lengths = {request.ctx};
  options.kl_positions = 0;
  const eval::ResultTable measured = run_perplexity(model, rows, documents, options, ppl, progress);
  for (std::size_t i = 0; i < results.points.size(); ++i) {
    results.points[i].perplexity =
        measured.find(rows[i].name, request.ctx, eval::kPerplexityMetric)->estimate;
  }
  results.notes = ppl.notes();
  sweep.finish(eval::results_text(to_json(results)), {progress.seconds(), progress.computed()});
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
  ordered_json out = {{"task", "sweep"},
                      {"length", results.request.ctx},
                      {"headroom", results.request.headroom},
                      {"documents", results.documents},
                      {"points", ordered_json::array()}};
  for (const SweepPoint& p : results.points) {
    const BetaInterval& fast = p.beta_fast;
    const BetaInterval& slow = p.beta_slow;
    out["points"].push_back({{"method", p.method},
                             {"low", p.low},
                             {"high", p.high},
                             {"beta_fast", {json_or_null(fast.from), json_or_null(fast.to)}},
                             {"beta_slow", {json_or_null(slow.from), json_or_null(slow.to)}},
                             {"metric", "perplexity"},
                             {"value", json_or_null(p.perplexity.value)},
                             {"stderr", json_or_null(p.perplexity.error)},
                             {"n", p.perplexity.n}});
  }
  return out;
}

namespace {

// The boundary that is not swept may differ between methods.
std::string same_or_varies(const std::vector<const SweepPoint*>& points,
                           const std::function<std::string(const SweepPoint&)>& text) {
  std::string common;
  for (const SweepPoint* p : points) {
    if (!p) continue;
    const std::string here = text(*p);
    if (!common.empty() && common != here) return "varies";
    common = here;
  }
  return common.empty() ? "-" : common;
}

std::string table_of_both(const SweepResults& results, const std::string& method) {
  const SweepRequest& r = results.request;
  std::vector<TextRow> table = {{method, "beta_fast"}, {"", "beta_slow"}};
  for (const int high : r.high) {
    const SweepPoint* any = results.at(method, std::nullopt, high);
    table[0].push_back(cat("high ", high));
    table[1].push_back(any ? text_of_beta_slow(*any) : "-");
  }
  for (const int low : r.low) {
    const SweepPoint* any = results.at(method, low, std::nullopt);
    TextRow row = {cat("low ", low), any ? text_of_beta_fast(*any) : "-"};
    for (const int high : r.high) row.push_back(cell(results.at(method, low, high)));
    table.push_back(std::move(row));
  }
  return aligned(table);
}

std::string table_of_one(const SweepResults& results) {
  const SweepRequest& r = results.request;
  const bool lows = !r.low.empty();
  std::vector<TextRow> table = {{"low", "beta_fast", "high", "beta_slow"}};
  for (const std::string& method : r.methods) table[0].push_back(method);
  for (const int boundary : lows ? r.low : r.high) {
    std::vector<const SweepPoint*> points;
    for (const std::string& method : r.methods) {
      points.push_back(lows ? results.at(method, boundary, std::nullopt)
                            : results.at(method, std::nullopt, boundary));
    }
    TextRow row = {same_or_varies(points, [](const SweepPoint& p) { return cat(p.low); }),
                   same_or_varies(points, text_of_beta_fast),
                   same_or_varies(points, [](const SweepPoint& p) { return cat(p.high); }),
                   same_or_varies(points, text_of_beta_slow)};
    for (const SweepPoint* p : points) row.push_back(cell(p));
    table.push_back(std::move(row));
  }
  return aligned(table);
}

}  // namespace

std::string to_text(const SweepResults& results) {
  const SweepRequest& r = results.request;
  std::string text =
      cat("Perplexity of the first ", length_text(r.ctx), " tokens, ", results.documents,
          " documents (window ", length_text(results.window), "):\n");
  if (r.low.empty() || r.high.empty()) return text + table_of_one(results);
  for (const std::string& method : r.methods) text += table_of_both(results, method);
  return text;
}

std::string to_csv(const SweepResults& results) {
  std::string text = csv_line({"method", "low", "high", "beta_fast_above", "beta_fast_to",
                               "beta_slow_from", "beta_slow_below", "perplexity", "stderr", "n"});
  for (const SweepPoint& p : results.points) {
    text += csv_line({p.method, cat(p.low), cat(p.high), number(p.beta_fast.from),
                      number(p.beta_fast.to), number(p.beta_slow.from), number(p.beta_slow.to),
                      number(p.perplexity.value), number(p.perplexity.error), cat(p.perplexity.n)});
  }
  return text;
}

}  // namespace mrrope::tune
