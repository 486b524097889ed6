// SPDX-License-Identifier: Apache-2.0
// One HTML page that needs nothing else: no script, style, font or picture from outside. Its policy
// (CSP) allows the page's own style and script by their digests and nothing more, so that text
// from a model could do nothing even if it were not escaped.
#pragma once

#include <string>

#include "report/charts/chart.h"
#include "report/charts/data_table.h"

namespace mrrope::report {

struct PageParts {
  std::string title;
  std::string lead;  // HTML next to the title
  std::string body;  // HTML
};

// In the head of every page.
constexpr const char* kPageMark = "<meta name=\"generator\" content=\"mrrope\">";

std::string to_page(const PageParts& parts);

// A chart with its caption, its table and its table as a download. `file` names the download.
// The note is HTML.
std::string figure(const LineChart& chart, const std::string& note, const DataTable& table,
                   const std::string& file);
// Maps side by side, with one table for all.
std::string figure(const std::vector<HeatMap>& maps, const std::string& title,
                   const std::string& note, const DataTable& table, const std::string& file);

// The table behind a line chart: a row per x, a column per series, errors as "+-".
DataTable table_of(const LineChart& chart);
DataTable table_of(const std::vector<HeatMap>& maps);

}  // namespace mrrope::report
