// SPDX-License-Identifier: Apache-2.0
// Charts as SVG. Colours come from classes: a page brings its own style sheet, a standalone file
// has one inside. Every series carries its numbers (data-values: x,y,low,high;...) in full; a
// curve of many points is thinned to the pixels, with 6 digits.
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

// The style sheet of charts, for light and dark.
std::string chart_style();

}  // namespace mrrope::report
