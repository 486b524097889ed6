// SPDX-License-Identifier: Apache-2.0
// A plain table for a terminal: columns as wide as their widest cell, two blanks between.
#pragma once

#include <string>
#include <vector>

namespace mrrope::cli {

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

// Cells stand to the right, except in the columns listed in `left`.
std::string to_text(const Table& table, const std::vector<std::size_t>& left = {});

// Cells with a comma, a quote or a line break are quoted.
std::string to_csv(const Table& table);

}  // namespace mrrope::cli
