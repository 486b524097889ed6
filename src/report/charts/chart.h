// SPDX-License-Identifier: Apache-2.0
// Charts as plain data, their axes, and how they are drawn as SVG. Colours come from classes: a
// page brings its own style sheet, a standalone file has one inside. Every series carries its
// numbers (data-values: x,y,low,high;...) in full; a curve of many points is thinned to the pixels,
// with 6 digits.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "mrrope/plan.h"

namespace mrrope::report {

enum class Spacing { linear, log };

struct Axis {
  std::string label{};
  Spacing spacing = Spacing::linear;
  bool tokens = false;               // a length of text: ticks at powers of two, written 4k
  std::vector<double> include = {};  // values that the axis always shows
  std::vector<double> ticks = {};    // values that have a tick before round ones do
};

// The range of values. Never empty: low < high, both finite, both positive on a log axis.
struct Range {
  double low = 0;
  double high = 1;
  Spacing spacing = Spacing::linear;

  // 0 at low, 1 at high; not clamped. NaN where the value has no place.
  double place(double value) const;
};

// Of the finite values (on a log axis: the positive ones). No value at all gives 0..1 or 1..10, a
// single one gets room on both sides.
Range range_of(std::span<const double> values, Spacing spacing);

// Round values inside the range, ascending, at most `max` (2 or more).
std::vector<double> ticks_of(const Range& range, bool tokens, int max);

// What a tick at this value says.
std::string tick_text(const Axis& axis, double value);

// For people: 4 significant digits, without an exponent from 0.0001 to 10 million; "-" for NaN.
std::string value_text(double value);

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

struct ChartPoint {
  double x = kNothing;
  double y = kNothing;  // NaN: nothing was measured here, and the line has a gap
  double low = kNothing;
  double high = kNothing;  // the band, where both are numbers
};

struct Series {
  std::string name;
  int colour = 0;  // Palette
  bool dashed = false;
  std::vector<ChartPoint> points;    // x ascending
  std::optional<ChartPoint> root{};  // shown as a marker of its own
};

// With a point for each value: x is its index.
Series with_values(Series series, std::span<const double> values);

// With its points in the order of x.
Series by_x(Series series);

struct Mark {  // a vertical line
  double x = 0;
  std::string label;
};

Mark window_mark(std::int64_t window);
std::vector<Mark> boundary_marks(const Boundaries& middle);

struct LineChart {
  std::string title{};
  Axis x{}, y{};
  std::vector<Series> series{};
  std::vector<Mark> marks{};
  bool dots = true;     // show the points themselves, and a tick at each
  bool spread = false;  // names stand along the lines, where these are far apart
};

// Whether there are two values that differ: otherwise a chart is empty or flat.
bool has_content(const LineChart& chart);

// Lines over the pairs of a model, without dots, their names spread.
LineChart pair_chart(std::string title, std::string y_label, Spacing spacing);

enum class Shades {
  verdict,  // low is bad (red), high is good (blue)
  amount,   // more is darker
};

struct HeatMap {
  std::string title;
  std::string x_label, y_label;
  std::vector<std::string> columns, rows;
  std::vector<std::vector<double>> values;        // [row][column], NaN: not measured
  std::vector<std::vector<std::string>> details;  // for the pointer; may be empty
  std::vector<std::vector<std::string>> texts{};  // in the cells; empty: the values
  double low = 0, high = 1;
  bool percent = false;  // cells show 100 times the value
  Shades shades = Shades::verdict;
  std::optional<std::pair<std::size_t, std::size_t>> best{};  // row and column to mark
  std::string key{};  // what the shades say; empty: the numbers in the cells do
};

// One chart, or maps side by side.
struct Figure {
  std::string section;  // heading of the page
  std::string file;     // name without extension, unique
  std::string title;
  std::string note;  // what to see, as plain text under the chart
  std::variant<LineChart, std::vector<HeatMap>> content;
  std::optional<std::size_t> verdict{};  // the one that it carries: it goes below that headline
  bool main = false;                     // of the metric that methods are compared by

  bool is_map() const { return std::holds_alternative<std::vector<HeatMap>>(content); }
};

// Colours are numbers 0..kColours-1; 0 is grey, for the untouched model. A method has the same
// colour in every chart; unknown names take the colours that are left, in the order they come.
// A method that grows with the sequence ("elastic:pro") is dashed. The first eight are those of
// Okabe and Ito, which colour-blind readers can tell apart; the shape of the dots, or the dashes of
// a line without dots, say the same once more.
constexpr int kColours = 12;
bool is_elastic(const std::string& name);

class Palette {
 public:
  int colour_of(const std::string& name);
  Series series(const std::string& name);

 private:
  std::vector<std::pair<std::string, int>> given_;
};

struct SvgOptions {
  double width = 760;
  bool standalone = false;  // in a file of its own: with its title
  double y = 0;             // of its top in that file
};

std::string to_svg(const LineChart& chart, const SvgOptions& options = {});
std::string to_svg(const HeatMap& map, const SvgOptions& options = {});

// All charts of these figures, below each other in one file.
std::string svg_file(const std::vector<Figure>& figures);

// The style sheet of charts, for light and dark.
std::string chart_style();

}  // namespace mrrope::report
