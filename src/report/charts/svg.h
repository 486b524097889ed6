// SPDX-License-Identifier: Apache-2.0
// Charts drawn: as SVG, and for a terminal (lines as Braille dots, heat maps as shaded cells). The
// colours of an SVG come from classes: a page brings its own style sheet, a standalone file has one
// inside. Every series carries its numbers (data-values: x,y,low,high;...) in full; a curve of many
// points is thinned to the pixels, with 6 digits.
#pragma once

#include <string>

#include "report/charts/chart.h"

namespace mrrope::report {

struct SvgOptions {
  double width = 760;
  bool standalone = false;  // a separate file: with title, style sheet and background
};

std::string to_svg(const LineChart& chart, const SvgOptions& options = {});
std::string to_svg(const HeatMap& map, const SvgOptions& options = {});

// Every chart of a figure as a file of its own, with a number from the second on.
struct NamedSvg {
  std::string number;  // "", "-2", "-3"
  std::string svg;
};
std::vector<NamedSvg> svg_files(const Figure& figure);

// The style sheet of charts, for light and dark.
std::string chart_style();

struct TerminalOptions {
  int columns = 80;
  int rows = 16;       // of the plot itself
  bool colour = true;  // 256 colours; without them every series has its own letter
};

std::string to_terminal(const LineChart& chart, const TerminalOptions& options = {});
std::string to_terminal(const HeatMap& map, const TerminalOptions& options = {});

}  // namespace mrrope::report
