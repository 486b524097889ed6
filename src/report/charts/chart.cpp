// SPDX-License-Identifier: Apache-2.0
#include "report/charts/chart.h"

#include <set>

#include "base/text.h"
#include "core/methods.h"

namespace mrrope::report {

namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kSmallest = std::numeric_limits<double>::min();

// 1, 2 or 5 times a power of ten, at least x.
double round_up(double x) {
  const double power = std::pow(10.0, std::floor(std::log10(x)));
  for (const double m : {1.0, 2.0, 5.0}) {
    if (m * power >= x * (1 - 1e-9)) return m * power;
  }
  return 10 * power;
}

std::vector<double> even_ticks(const Range& range, int max) {
  // In halves, so that a range from -1e308 to 1e308 has a width.
  const double half = range.high / 2 - range.low / 2;
  const double step = round_up(std::max(half / (max - 1) * 2, kSmallest));
  std::vector<double> ticks;
  if (!std::isfinite(step)) return ticks;
  const double first = std::ceil(range.low / step - 1e-9);
  for (int i = 0; i < max; ++i) {
    const double value = (first + i) * step;
    if (!(range.place(value) <= 1 + 1e-9)) break;
    if (!ticks.empty() && value == ticks.back()) break;  // steps lost to rounding
    ticks.push_back(value);
  }
  return ticks;
}

// 1, 2, 5 of every decade; where these are too many, 1 of every decade or of every few.
std::vector<double> decade_ticks(const Range& range, int max) {
  const int first = int(std::floor(std::log10(range.low)));
  const int last = int(std::ceil(std::log10(range.high)));
  std::vector<double> ticks;
  const auto fill = [&](std::initializer_list<double> digits, int step) {
    ticks.clear();
    for (int e = first; e <= last; e += step) {
      for (const double digit : digits) {
        const double value = digit * std::pow(10.0, e);
        if (value < range.low * (1 - 1e-9) || value > range.high * (1 + 1e-9)) continue;
        if (std::isfinite(value)) ticks.push_back(value);
      }
    }
    return int(ticks.size()) <= max;
  };
  if (fill({1, 2, 5}, 1)) return ticks;
  int step = 1;
  while (!fill({1}, step)) ++step;
  return ticks;
}

std::vector<double> doubling_ticks(const Range& range, int max) {
  const int first = int(std::ceil(std::log2(range.low) - 1e-9));
  const int last = int(std::floor(std::log2(range.high) + 1e-9));
  std::vector<double> ticks;
  const int step = std::max(1, (last - first + max) / max);
  for (int e = first; e <= last; e += step) ticks.push_back(std::ldexp(1.0, e));
  return ticks;
}

constexpr std::pair<const char*, int> kUsual[] = {
    {"none", 0},        {"original", 0},    {"pro", 1},
    {"yarn", 2},        {"uni", 3},         {"power", 4},
    {"ntk", 5},         {"pi", 6},          {"yarn-rotations", 7},
    {"regressive", 10}, {"elastic:pro", 9}, {"elastic:yarn", 10},
    {"elastic:uni", 11}};
// For other names, those that are rarely in the same chart first. 8 is the chosen plan of a search.
constexpr int kOthers[] = {8, 7, 6, 5, 4, 11, 10, 9, 3, 2, 1};

}  // namespace

double Range::place(double value) const {
  if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  if (spacing == Spacing::linear) return (value / 2 - low / 2) / (high / 2 - low / 2);
  if (!(value > 0)) return std::numeric_limits<double>::quiet_NaN();
  return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
}

Range range_of(std::span<const double> values, Spacing spacing) {
  const bool log = spacing == Spacing::log;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double v : values) {
    if (!std::isfinite(v) || (log && !(v >= kSmallest))) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (low > high) return {log ? 1.0 : 0.0, log ? 10.0 : 1.0, spacing};
  if (log) {
    if (high / low < 1.0001) {
      low = std::max(low / 2, kSmallest);
      high = std::min(high, kLargest / 2) * 2;
    }
  } else if (high / 2 - low / 2 <= std::max(std::abs(low), std::abs(high)) * 1e-12) {
    const double room = std::max(std::abs(low) * 0.5, 0.5);
    low = std::max(low - room, -kLargest);
    high = std::min(high + room, kLargest);
  }
  return {low, high, spacing};
}

std::vector<double> ticks_of(const Range& range, bool tokens, int max) {
  std::vector<double> ticks;
  if (range.spacing == Spacing::log) {
    ticks = tokens ? doubling_ticks(range, max) : decade_ticks(range, max);
    if (ticks.size() >= 3 || range.high / range.low > 4) return ticks;
  }
  // A short stretch of a log axis reads best with even steps.
  std::vector<double> even = even_ticks(range, max);
  return even.size() > ticks.size() ? even : ticks;
}

std::string tick_text(const Axis& axis, double value) {
  if (axis.tokens && value >= 1 && value < 9e15 && value == std::floor(value)) {
    return length_text(std::int64_t(value));
  }
  return value_text(value);
}

std::string value_text(double value) {
  if (std::isnan(value)) return "-";
  const double size = std::abs(value);
  if (std::isinf(value)) return value > 0 ? "infinite" : "-infinite";
  if (value == 0) return "0";
  if (size >= 1000 && size < 1e7) {
    const std::string text = fixed(value, size < 10000 ? 1 : 0);
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  }
  std::string text = significant(value, 4);
  if (const auto e = text.find("e+"); e != std::string::npos) {  // 1e+07 as 1e7
    text.erase(e + 1, 1);
    while (text[e + 1] == '0') text.erase(e + 1, 1);
  } else if (const auto m = text.find("e-0"); m != std::string::npos) {
    text.erase(m + 2, 1);
  }
  return text;
}

Series with_values(Series series, std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    series.points.push_back({double(i), values[i]});
  }
  return series;
}

Series by_x(Series series) {
  std::stable_sort(series.points.begin(), series.points.end(),
                   [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  return series;
}

Mark window_mark(std::int64_t window) {
  return {double(window), cat("window ", length_text(window))};
}

std::vector<Mark> boundary_marks(const Boundaries& middle) {
  return {{double(middle.low), cat("low ", middle.low)},
          {double(middle.high), cat("high ", middle.high)}};
}

LineChart pair_chart(std::string title, std::string y_label, Spacing spacing) {
  return {.title = std::move(title),
          .x = {"pair, from fast to slow"},
          .y = {std::move(y_label), spacing},
          .dots = false,
          .spread = true};
}

bool has_content(const LineChart& chart) {
  std::set<double> values;
  for (const Series& s : chart.series) {
    for (const ChartPoint& p : s.points) {
      if (std::isfinite(p.y)) values.insert(p.y);
    }
  }
  return values.size() > 1;
}

bool is_elastic(const std::string& name) { return growth_of(name) != Growth::none; }

Series Palette::series(const std::string& name) {
  return {name, colour_of(name), is_elastic(name), {}};
}

int Palette::colour_of(const std::string& name) {
  const auto named = [&](const auto& known) { return known.first == name; };
  if (const auto* usual = find_by(kUsual, named)) return usual->second;
  if (const auto* known = find_by(given_, named)) return known->second;
  const int colour = kOthers[given_.size() % std::size(kOthers)];
  given_.emplace_back(name, colour);
  return colour;
}

}  // namespace mrrope::report
