// SPDX-License-Identifier: Apache-2.0
// Charts for a terminal: lines as Braille dots, heat maps as shaded cells.
#pragma once

#include <string>

#include "report/charts/chart.h"

namespace mrrope::report {

struct TerminalOptions {
  int columns = 80;
  int rows = 16;       // of the plot itself
  bool colour = true;  // 256 colours; without them every series has its own letter
};

std::string to_terminal(const LineChart& chart, const TerminalOptions& options = {});
std::string to_terminal(const HeatMap& map, const TerminalOptions& options = {});

}  // namespace mrrope::report
