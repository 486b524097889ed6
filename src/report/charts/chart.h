// SPDX-License-Identifier: Apache-2.0
// Charts as plain data. svg.h draws them for pages, terminal.h for terminals.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "report/charts/axis.h"

namespace mrrope::report {

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
  std::vector<ChartPoint> points;  // x ascending
};

struct Mark {  // a vertical line
  double x = 0;
  std::string label;
};

struct LineChart {
  std::string title;
  Axis x, y;
  std::vector<Series> series;
  std::vector<Mark> marks;
  bool dots = true;  // show the points themselves
};

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
  double low = 0, high = 1;
  bool percent = false;  // cells show 100 times the value
  Shades shades = Shades::verdict;
};

// Colours are numbers 0..kColours-1; 0 is grey, for the untouched model. A method has the same
// colour in every chart; unknown names take the colours that are left, in the order they come.
// A method that grows with the sequence ("elastic:pro") is dashed.
constexpr int kColours = 12;
bool is_elastic(const std::string& name);

class Palette {
 public:
  int colour_of(const std::string& name);
  Series series(const std::string& name);

 private:
  std::vector<std::pair<std::string, int>> given_;
};

}  // namespace mrrope::report
