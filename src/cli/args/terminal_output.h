// SPDX-License-Identifier: Apache-2.0
// What stdout can show, and charts on it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "report/charts/chart.h"

namespace mrrope::cli {

bool stdout_is_terminal();

// A terminal that takes colours, and a user who wants them (NO_COLOR).
bool stdout_takes_colour();

// Prints a chart as wide as the terminal.
void print_chart(const std::variant<report::LineChart, std::vector<report::HeatMap>>& content);

}  // namespace mrrope::cli
