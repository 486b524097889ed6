// SPDX-License-Identifier: Apache-2.0
#include "report/sweep_part.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "report/json_fields.h"
#include "report/verdict_text.h"

namespace mrrope::report {

using nlohmann::ordered_json;

namespace {

constexpr double kMaxPairs = 1 << 20;

int pair_at(const ordered_json& object, const char* key) {
  const double value = number_at(object, key);
  if (!(value >= 0 && value <= kMaxPairs)) refuse_results(cat("\"", key, "\" is not a pair"));
  return int(value);
}

// null: no end on this side.
std::string interval_at(const ordered_json& object, const char* key, bool fast) {
  const ordered_json& ends = list_at(object, key);
  if (ends.size() != 2) refuse_results(cat("\"", key, "\" is not an interval"));
  const auto text = [](const ordered_json& v) {
    return v.is_number() ? significant(v.get<double>(), 3) : std::string("inf");
  };
  const bool open_start = fast || text(ends[0]) == "0";
  const bool open_end = !fast || !ends[1].is_number();
  return cat(open_start ? "(" : "[", text(ends[0]), ", ", text(ends[1]), open_end ? ")" : "]");
}

std::string point_text(const RecordedSweep::Point& p) {
  return cat(p.method, ", low ", p.low, ", high ", p.high, "\nbeta_fast ", p.beta_fast,
             ", beta_slow ", p.beta_slow, "\nperplexity ", estimate_text(p.perplexity),
             ", n = ", p.perplexity.n);
}

bool measured(const RecordedSweep::Point& p) {
  return p.perplexity.n > 0 && std::isfinite(p.perplexity.value);
}

struct Axes {
  std::vector<std::string> methods;
  std::set<int> lows, highs;
};

Axes axes_of(const RecordedSweep& sweep) {
  Axes axes;
  for (const auto& p : sweep.points) {
    if (std::find(axes.methods.begin(), axes.methods.end(), p.method) == axes.methods.end()) {
      axes.methods.push_back(p.method);
    }
    axes.lows.insert(p.low);
    axes.highs.insert(p.high);
  }
  return axes;
}

// Whether every method has one value of the other boundary.
bool one_per_method(const RecordedSweep& sweep, int RecordedSweep::Point::*boundary) {
  std::set<std::string> methods;
  std::set<std::pair<std::string, int>> values;
  for (const auto& p : sweep.points) {
    methods.insert(p.method);
    values.emplace(p.method, p.*boundary);
  }
  return values.size() == methods.size();
}

LineChart line_chart(const RecordedSweep& sweep, bool lows) {
  LineChart chart;
  chart.x = {lows ? "low: first pair of the ramp" : "high: first pair scaled in full",
             Spacing::linear, false};
  chart.y = {"perplexity", Spacing::log, false};
  Palette palette;
  for (const std::string& method : axes_of(sweep).methods) {
    Series s = palette.series(method);
    for (const auto& p : sweep.points) {
      if (p.method != method) continue;
      const eval::Estimate& e = p.perplexity;
      ChartPoint point{double(lows ? p.low : p.high), measured(p) ? e.value : kNothing};
      if (std::isfinite(e.error)) point.low = e.value - e.error, point.high = e.value + e.error;
      s.points.push_back(point);
    }
    std::stable_sort(s.points.begin(), s.points.end(),
                     [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
    chart.series.push_back(std::move(s));
  }
  return chart;
}

std::vector<HeatMap> heat_maps(const RecordedSweep& sweep) {
  double min = INFINITY;
  double max = -INFINITY;
  for (const auto& p : sweep.points) {
    if (!measured(p)) continue;
    min = std::min(min, p.perplexity.value);
    max = std::max(max, p.perplexity.value);
  }
  const Axes axes = axes_of(sweep);
  std::vector<HeatMap> maps;
  for (const std::string& method : axes.methods) {
    HeatMap map;
    map.title = method;
    map.x_label = "high";
    map.y_label = "low";
    map.shades = Shades::amount;
    if (min <= max) map.low = min, map.high = max;
    for (const int high : axes.highs) map.columns.push_back(cat(high));
    for (const int low : axes.lows) {
      map.rows.push_back(cat(low));
      map.values.emplace_back();
      map.details.emplace_back();
      for (const int high : axes.highs) {
        const auto p = std::find_if(sweep.points.begin(), sweep.points.end(), [&](const auto& q) {
          return q.method == method && q.low == low && q.high == high;
        });
        const bool there = p != sweep.points.end();
        map.values.back().push_back(there && measured(*p) ? p->perplexity.value : kNothing);
        map.details.back().push_back(there ? point_text(*p) : "not measured");
      }
    }
    maps.push_back(std::move(map));
  }
  return maps;
}

}  // namespace

RecordedSweep sweep_from_json(const ordered_json& results) {
  if (!results.is_object()) refuse_results("it is not an object");
  RecordedSweep out;
  out.length = count_at(results, "length");
  if (results.contains("headroom")) out.headroom = number_at(results, "headroom");
  out.documents = std::size_t(count_at(results, "documents"));
  for (const ordered_json& entry : list_at(results, "points")) {
    if (!entry.is_object()) refuse_results("a point is not an object");
    out.points.push_back(
        {text_at(entry, "method"),
         pair_at(entry, "low"),
         pair_at(entry, "high"),
         interval_at(entry, "beta_fast", true),
         interval_at(entry, "beta_slow", false),
         {value_at(entry, "value"), value_at(entry, "stderr"), std::size_t(count_at(entry, "n"))}});
  }
  if (out.points.empty()) refuse_results("it has no points");
  return out;
}

Figure sweep_figure(const RecordedSweep& sweep) {
  const bool lows = one_per_method(sweep, &RecordedSweep::Point::high);
  const bool highs = one_per_method(sweep, &RecordedSweep::Point::low);
  const auto title = [&](const char* over) {
    return cat("Perplexity at ", length_text(sweep.length), " against ", over, ", ",
               sweep.documents, sweep.documents == 1 ? " document" : " documents");
  };
  if (lows || highs) {
    LineChart chart = line_chart(sweep, lows);
    chart.title = title(lows ? "low" : "high");
    return {kSweepSection, "sweep", chart.title,
            "Lower is better. The band is one standard error over documents.", std::move(chart)};
  }
  return {kSweepSection, "sweep", title("low and high"), "Lower is better; darker is higher.",
          heat_maps(sweep)};
}

DataTable sweep_table(const RecordedSweep& sweep) {
  DataTable table;
  table.caption = "Every point, with the beta values that give its boundaries";
  table.header = {"method", "low", "high", "beta_fast", "beta_slow", "perplexity", "+-", "n"};
  for (const auto& p : sweep.points) {
    table.rows.push_back({p.method, cat(p.low), cat(p.high), p.beta_fast, p.beta_slow,
                          fixed(p.perplexity.value, 4), fixed(p.perplexity.error, 4),
                          cat(p.perplexity.n)});
  }
  return table;
}

const RecordedSweep::Point* sweep_best(const RecordedSweep& sweep) {
  const RecordedSweep::Point* best = nullptr;
  for (const auto& p : sweep.points) {
    if (measured(p) && (!best || p.perplexity.value < best->perplexity.value)) best = &p;
  }
  return best;
}

std::string sweep_text(const RecordedSweep& sweep) {
  const RecordedSweep::Point* best = sweep_best(sweep);
  if (!best) return "Nothing was measured.";
  return cat(best->method, " with low ", best->low, " and high ", best->high,
             " has the lowest perplexity at ", length_text(sweep.length),
             " tokens: ", estimate_text(best->perplexity), ".");
}

}  // namespace mrrope::report
