// SPDX-License-Identifier: Apache-2.0
#include "cli/args/terminal_output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "report/charts/terminal.h"

namespace mrrope::cli {

namespace {

int terminal_width() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::clamp(int(size.ws_col), 40, 120) : 80;
}

}  // namespace

bool stdout_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && (term == nullptr || std::string(term) != "dumb");
}

bool stdout_takes_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  return stdout_is_terminal() && (no_color == nullptr || *no_color == '\0');
}

void print_chart(const std::variant<report::LineChart, std::vector<report::HeatMap>>& content) {
  const report::TerminalOptions options{
      .columns = terminal_width() - 12, .rows = 16, .colour = stdout_takes_colour()};
  if (const auto* chart = std::get_if<report::LineChart>(&content)) {
    std::cout << to_terminal(*chart, options) << "\n";
    return;
  }
  for (const report::HeatMap& map : std::get<std::vector<report::HeatMap>>(content)) {
    std::cout << to_terminal(map, options) << "\n";
  }
}

}  // namespace mrrope::cli
