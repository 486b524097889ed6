// SPDX-License-Identifier: Apache-2.0
#include "report/charts/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/text.h"
#include "core/methods.h"
#include "report/charts/markup.h"

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

std::string axis_text(const Axis& axis, double value) {
  if (axis.tokens && value >= 1 && value < 9e15 && value == std::floor(value)) {
    return length_text(std::int64_t(value));
  }
  return value_text(value);
}

std::vector<Tick> even_ticks(const Range& range, const Axis& axis, int max) {
  // In halves, so that a range from -1e308 to 1e308 has a width.
  const double half = range.high / 2 - range.low / 2;
  const double step = round_up(std::max(half / (max - 1) * 2, kSmallest));
  std::vector<Tick> ticks;
  if (!std::isfinite(step)) return ticks;
  const double first = std::ceil(range.low / step - 1e-9);
  for (int i = 0; i < max; ++i) {
    const double value = (first + i) * step;
    if (!(range.place(value) <= 1 + 1e-9)) break;
    if (!ticks.empty() && value == ticks.back().value) break;  // steps lost to rounding
    ticks.push_back({value, axis_text(axis, value)});
  }
  return ticks;
}

// 1, 2, 5 of every decade; where these are too many, 1 of every decade or of every few.
std::vector<Tick> decade_ticks(const Range& range, const Axis& axis, int max) {
  const int first = int(std::floor(std::log10(range.low)));
  const int last = int(std::ceil(std::log10(range.high)));
  std::vector<Tick> ticks;
  const auto fill = [&](std::initializer_list<double> digits, int step) {
    ticks.clear();
    for (int e = first; e <= last; e += step) {
      for (const double digit : digits) {
        const double value = digit * std::pow(10.0, e);
        if (value < range.low * (1 - 1e-9) || value > range.high * (1 + 1e-9)) continue;
        if (std::isfinite(value)) ticks.push_back({value, axis_text(axis, value)});
      }
    }
    return int(ticks.size()) <= max;
  };
  if (fill({1, 2, 5}, 1)) return ticks;
  int step = 1;
  while (!fill({1}, step)) ++step;
  return ticks;
}

std::vector<Tick> doubling_ticks(const Range& range, const Axis& axis, int max) {
  const int first = int(std::ceil(std::log2(range.low) - 1e-9));
  const int last = int(std::floor(std::log2(range.high) + 1e-9));
  std::vector<Tick> ticks;
  const int step = std::max(1, (last - first + max) / max);
  for (int e = first; e <= last; e += step) {
    const double value = std::ldexp(1.0, e);
    ticks.push_back({value, axis_text(axis, value)});
  }
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

// The colours of the pages, as near as 256 allow; readable on black and on white.
constexpr int kTerminalColour[kColours] = {245, 33, 166, 36, 170, 172, 74, 95, 107, 161, 99, 37};

std::string coloured(int colour, const std::string& text) {
  return cat("\x1b[38;5;", kTerminalColour[std::clamp(colour, 0, kColours - 1)], "m", text,
             "\x1b[0m");
}

std::string right(const std::string& text, std::size_t width) {
  const std::size_t have = character_count(text);
  return std::string(width > have ? width - have : 0, ' ') + text;
}

// U+2800 + dots as UTF-8.
std::string braille(unsigned dots) {
  std::string out = "\xE2\xA0\x80";
  out[1] = char(0xA0 + (dots >> 6));
  out[2] = char(0x80 + (dots & 0x3F));
  return out;
}

// Terminals obey control characters: names come from files.
std::string harmless(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  return out;
}

struct Canvas {
  struct Cell {
    unsigned dots = 0;
    int colour = 0;
    char letter = 0;
  };
  int columns, rows;
  std::vector<Cell> cells = std::vector<Cell>(std::size_t(columns) * std::size_t(rows));

  // The cell of a dot: every cell has two across and four down; y from the top. Nullptr outside.
  Cell* at(int x, int y) {
    if (x < 0 || y < 0 || x >= 2 * columns || y >= 4 * rows) return nullptr;
    return &cells[std::size_t(y / 4) * std::size_t(columns) + std::size_t(x / 2)];
  }

  void line(double x0, double y0, double x1, double y1, int colour) {
    static constexpr unsigned kBits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    const int steps = int(std::max(std::abs(x1 - x0), std::abs(y1 - y0))) + 1;
    for (int i = 0; i <= steps; ++i) {
      const double t = double(i) / steps;
      const int x = int(std::lround(x0 + t * (x1 - x0)));
      const int y = int(std::lround(y0 + t * (y1 - y0)));
      if (Cell* cell = at(x, y)) {
        cell->dots |= kBits[y % 4][x % 2];
        cell->colour = colour;
      }
    }
  }

  std::string row(int y, bool colour) {
    std::string out;
    for (int x = 0; x < columns; ++x) {
      const Cell& cell = *at(2 * x, 4 * y);
      const std::string text = cell.letter != 0 ? std::string(1, cell.letter)
                               : cell.dots == 0 ? " "
                                                : braille(cell.dots);
      out += colour && cell.dots != 0 ? coloured(cell.colour, text) : text;
    }
    return out;
  }
};

}  // namespace

double Range::place(double value) const {
  if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  if (spacing == Spacing::linear) return (value / 2 - low / 2) / (high / 2 - low / 2);
  if (!(value > 0)) return std::numeric_limits<double>::quiet_NaN();
  return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
}

double HeatMap::value_at(std::size_t row, std::size_t column) const {
  return row < values.size() && column < values[row].size() ? values[row][column] : kNothing;
}

std::string HeatMap::text_at(std::size_t row, std::size_t column) const {
  const double value = value_at(row, column);
  if (!std::isfinite(value)) return "-";
  return percent ? fixed(100 * value, 0) : value_text(value);
}

std::optional<int> HeatMap::shade_at(std::size_t row, std::size_t column) const {
  const Range range{low, high > low ? high : low + 1, Spacing::linear};
  const double place = range.place(value_at(row, column));
  if (!std::isfinite(place)) return std::nullopt;
  return int(std::lround(std::clamp(place, 0.0, 1.0) * 10));
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

std::vector<Tick> ticks_of(const Range& range, const Axis& axis, int max) {
  std::vector<Tick> ticks;
  if (range.spacing == Spacing::log) {
    ticks = axis.tokens ? doubling_ticks(range, axis, max) : decade_ticks(range, axis, max);
    if (ticks.size() >= 3 || range.high / range.low > 4) return ticks;
  }
  // A short stretch of a log axis reads best with even steps.
  std::vector<Tick> even = even_ticks(range, axis, max);
  return even.size() > ticks.size() ? even : ticks;
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

bool is_elastic(const std::string& name) { return growth_of(name) != Growth::none; }

Series Palette::series(const std::string& name) {
  return {name, colour_of(name), is_elastic(name), {}};
}

int Palette::colour_of(const std::string& name) {
  for (const auto& [usual, colour] : kUsual) {
    if (name == usual) return colour;
  }
  for (const auto& [known, colour] : given_) {
    if (known == name) return colour;
  }
  const int colour = kOthers[given_.size() % std::size(kOthers)];
  given_.emplace_back(name, colour);
  return colour;
}

std::string to_terminal(const LineChart& chart, const TerminalOptions& options) {
  std::vector<double> xs;
  std::vector<double> ys;
  for (const Series& s : chart.series) {
    for (const ChartPoint& p : s.points) {
      if (!std::isfinite(p.y)) continue;
      xs.push_back(p.x);
      ys.push_back(p.y);
    }
  }
  std::string out = harmless(chart.title) + "\n";
  if (ys.empty()) return out + "  (nothing measured yet)\n";
  ys.insert(ys.end(), chart.y.include.begin(), chart.y.include.end());
  const Range x = range_of(xs, chart.x.spacing);
  const Range y = range_of(ys, chart.y.spacing);
  const int rows = std::max(4, options.rows);
  const std::vector<Tick> y_ticks = ticks_of(y, chart.y, std::max(2, rows / 3));
  std::size_t label = 0;
  for (const Tick& t : y_ticks) label = std::max(label, t.text.size());
  const int columns = std::max(16, options.columns - int(label) - 2);
  Canvas canvas{columns, rows};
  const auto place_x = [&](double v) { return x.place(v) * (2 * columns - 1); };
  const auto place_y = [&](double v) { return (1 - y.place(v)) * (4 * rows - 1); };
  std::string legend;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Series& s = chart.series[i];
    const char letter = char('a' + i % 26);
    const ChartPoint* before = nullptr;
    for (const ChartPoint& p : s.points) {
      const bool shown = std::isfinite(place_x(p.x)) && std::isfinite(place_y(p.y));
      if (shown) {
        const ChartPoint& from = before != nullptr ? *before : p;
        canvas.line(place_x(from.x), place_y(from.y), place_x(p.x), place_y(p.y), s.colour);
      }
      before = shown ? &p : nullptr;
    }
    if (!options.colour) {
      // A letter at most every few cells: a dense curve stays a curve.
      double last = -100;
      for (const ChartPoint& p : s.points) {
        const double px = place_x(p.x);
        if (!std::isfinite(px) || !std::isfinite(place_y(p.y)) || px - last < 12) continue;
        if (auto* cell = canvas.at(int(std::lround(px)), int(std::lround(place_y(p.y))))) {
          cell->letter = letter;
        }
        last = px;
      }
    }
    const std::string name = harmless(s.name);
    legend += "  " + (options.colour ? coloured(s.colour, braille(0xFF) + " " + name)
                                     : cat(letter, " ", name));
  }
  const auto nearest_row = [&](double v) { return int(std::lround(place_y(v))) / 4; };
  out += harmless(chart.y.label) + "\n";
  for (int r = 0; r < rows; ++r) {
    std::string text;
    for (const Tick& t : y_ticks) {
      if (nearest_row(t.value) == r) text = t.text;
    }
    out += right(text, label) + " \xE2\x94\x82" + canvas.row(r, options.colour) + "\n";
  }
  std::string below(std::size_t(columns), ' ');
  std::size_t free = 0;
  for (const Tick& t : ticks_of(x, chart.x, std::max(2, columns / 12))) {
    const auto at = std::size_t(std::clamp(place_x(t.value) / 2, 0.0, double(columns - 1)));
    std::size_t begin = at > t.text.size() / 2 ? at - t.text.size() / 2 : 0;
    if (begin + t.text.size() > below.size()) begin = below.size() - t.text.size();
    if (begin < free) continue;
    below.replace(begin, t.text.size(), t.text);
    free = begin + t.text.size() + 1;
  }
  std::string rule;
  for (int i = 0; i < columns; ++i) rule += "\xE2\x94\x80";
  const std::string margin(label + 1, ' ');
  out += margin + "\xE2\x94\x94" + rule + "\n" + margin + " " + below + "  " +
         harmless(chart.x.label) + "\n" + legend + "\n";
  return out;
}

std::string to_terminal(const HeatMap& map, const TerminalOptions& options) {
  // From red through pale to blue, as on the pages; black or white on it.
  static constexpr int kVerdict[11] = {124, 160, 209, 215, 223, 230, 195, 153, 110, 67, 18};
  static constexpr int kAmount[11] = {255, 253, 251, 249, 247, 245, 243, 241, 239, 237, 235};
  const bool verdict = map.shades == Shades::verdict;
  std::string out = harmless(map.title) + "\n";
  std::size_t label = character_count(map.y_label);
  for (const std::string& row : map.rows) label = std::max(label, character_count(row));
  std::size_t width = map.best ? 8 : 5;
  for (const std::string& column : map.columns) {
    width = std::max(width, character_count(column) + 1);
  }
  out += right(harmless(map.y_label), label);
  for (const std::string& column : map.columns) out += right(harmless(column), width);
  out += "\n";
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    out += right(harmless(map.rows[r]), label);
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const std::string text =
          right(cat(map.text_at(r, c), map.best == std::pair(r, c) ? "*" : ""), width);
      const std::optional<int> shade = map.shade_at(r, c);
      if (!shade || !options.colour) {
        out += text;
        continue;
      }
      const bool dark = verdict ? *shade <= 1 || *shade >= 9 : *shade >= 5;
      out += cat("\x1b[", dark ? "97" : "30", ";48;5;", (verdict ? kVerdict : kAmount)[*shade], "m",
                 text, "\x1b[0m");
    }
    out += "\n";
  }
  return out;
}

}  // namespace mrrope::report
