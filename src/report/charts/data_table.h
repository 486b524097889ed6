// SPDX-License-Identifier: Apache-2.0
// A table of a page: shown, read aloud, and downloaded as CSV.
#pragma once

#include <string>
#include <vector>

namespace mrrope::report {

struct DataTable {
  std::string caption;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::size_t text_columns = 1;  // this many are text, the rest are numbers
  bool text_at_end = false;      // and so is the last one
};

std::string to_html(const DataTable& table);

// Cells with a comma, a quote or a line break are quoted. A cell that a spreadsheet would run as a
// formula (it starts with = + - @ and is not a number) gets an apostrophe before it.
std::string to_csv(const DataTable& table);

}  // namespace mrrope::report
