// SPDX-License-Identifier: Apache-2.0
// Text, tables and figures on their way into HTML, SVG and CSV, and one HTML page that needs
// nothing else: no script, style, font or picture from outside. Its policy (CSP) allows the page's
// own style and script by their digests and nothing more, so that text from a model could do
// nothing even if it were not escaped.
#pragma once

#include <string_view>

#include "report/charts/chart.h"

// Files that are part of the program: CMake turns each into a string (mrrope_embed).
namespace mrrope::embedded {

extern const char* const chart_css;
extern const char* const page_css;
extern const char* const page_js;
extern const char* const terms_json;
extern const char* const paper_json;  // data/paper.json

}  // namespace mrrope::embedded

namespace mrrope::report {

// Safe between tags and in quoted attributes: & < > " ' become entities; what is not UTF-8 and
// control characters (but tab and line feed) become U+FFFD.
std::string escaped(std::string_view text);

// As part of a data: address.
std::string percent_encoded(std::string_view text);

// Characters, as a reader counts them (code points).
std::size_t character_count(std::string_view text);

// The first `max` characters; "..." at the end of a text that was longer.
std::string shortened(const std::string& text, std::size_t max);

struct DataTable {
  std::string caption{};
  std::vector<std::string> header{};
  std::vector<std::vector<std::string>> rows{};
  std::size_t text_columns = 1;  // this many are text, the rest are numbers
  bool text_at_end = false;      // and so is the last one
};

std::string to_html(const DataTable& table);

// Cells with a comma, a quote or a line break are quoted. A cell that a spreadsheet would run as a
// formula (it starts with = + - @ and is not a number) gets an apostrophe before it.
std::string to_csv(const DataTable& table);

// A figure with its caption, the table behind it (of lines a row per x and a column per series,
// errors as "+-") and that table as a download. full: across the whole page.
std::string to_html(const Figure& figure, bool full = false);

// In the head of every page.
constexpr const char* kPageMark = "<meta name=\"generator\" content=\"mrrope\">";

// lead and body are HTML; the lead is next to the title.
std::string to_page(const std::string& title, const std::string& lead, const std::string& body);

}  // namespace mrrope::report
