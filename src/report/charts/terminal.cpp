// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/charts/markup.h"
#include "report/charts/svg.h"

namespace mrrope::report {

namespace {

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

class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns), rows_(rows), cells_(std::size_t(columns) * std::size_t(rows)) {}

  // Dots: two across and four down in every cell; y from the top.
  void dot(int x, int y, int colour) {
    static constexpr unsigned kBits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    if (x < 0 || y < 0 || x >= 2 * columns_ || y >= 4 * rows_) return;
    Cell& cell = at(x / 2, y / 4);
    cell.dots |= kBits[y % 4][x % 2];
    cell.colour = colour;
  }

  void letter(int x, int y, char c) {
    if (x < 0 || y < 0 || x >= 2 * columns_ || y >= 4 * rows_) return;
    at(x / 2, y / 4).letter = c;
  }

  void line(double x0, double y0, double x1, double y1, int colour) {
    const int steps = int(std::max(std::abs(x1 - x0), std::abs(y1 - y0))) + 1;
    for (int i = 0; i <= steps; ++i) {
      const double t = double(i) / steps;
      dot(int(std::lround(x0 + t * (x1 - x0))), int(std::lround(y0 + t * (y1 - y0))), colour);
    }
  }

  std::string row(int y, bool colour) const {
    std::string out;
    for (int x = 0; x < columns_; ++x) {
      const Cell& cell = cells_[index(x, y)];
      if (cell.letter != 0) {
        out += cell.letter;
      } else if (cell.dots == 0) {
        out += ' ';
      } else {
        out += colour ? coloured(cell.colour, braille(cell.dots)) : braille(cell.dots);
      }
    }
    return out;
  }

 private:
  struct Cell {
    unsigned dots = 0;
    int colour = 0;
    char letter = 0;
  };
  std::size_t index(int x, int y) const {
    return std::size_t(y) * std::size_t(columns_) + std::size_t(x);
  }
  Cell& at(int x, int y) { return cells_[index(x, y)]; }

  int columns_, rows_;
  std::vector<Cell> cells_;
};

}  // namespace

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
  Canvas canvas(columns, rows);
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
        canvas.letter(int(std::lround(px)), int(std::lround(place_y(p.y))), letter);
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
  const Range range{map.low, map.high > map.low ? map.high : map.low + 1, Spacing::linear};
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    out += right(harmless(map.rows[r]), label);
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const double value =
          r < map.values.size() && c < map.values[r].size() ? map.values[r][c] : kNothing;
      const double place = range.place(value);
      if (!std::isfinite(place)) {
        out += right("-", width);
        continue;
      }
      const std::string text = right(cat(map.percent ? fixed(100 * value, 0) : value_text(value),
                                         map.best == std::pair(r, c) ? "*" : ""),
                                     width);
      const int shade = int(std::lround(std::clamp(place, 0.0, 1.0) * 10));
      const bool dark = verdict ? shade <= 1 || shade >= 9 : shade >= 5;
      const int paper = (verdict ? kVerdict : kAmount)[shade];
      out += options.colour
                 ? cat("\x1b[", dark ? "97" : "30", ";48;5;", paper, "m", text, "\x1b[0m")
                 : text;
    }
    out += "\n";
  }
  return out;
}

}  // namespace mrrope::report
