// SPDX-License-Identifier: Apache-2.0
// One HTML page that needs nothing else: no script, style, font or picture from outside. Its policy
// (CSP) allows the page's own style and script by their digests and nothing more, so that text
// from a model could do nothing even if it were not escaped.
#pragma once

#include <string>

#include "report/charts/chart.h"
#include "report/charts/markup.h"

namespace mrrope::report {

struct PageParts {
  std::string title;
  std::string lead;  // HTML next to the title
  std::string body;  // HTML
};

// In the head of every page.
constexpr const char* kPageMark = "<meta name=\"generator\" content=\"mrrope\">";

std::string to_page(const PageParts& parts);

// A figure with its caption, the table behind it (of lines a row per x and a column per series,
// errors as "+-") and that table as a download.
std::string to_html(const Figure& figure);

}  // namespace mrrope::report
