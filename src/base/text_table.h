// SPDX-License-Identifier: Apache-2.0
// Tables as text: for a terminal, and as comma-separated values.
#pragma once

#include <string>
#include <vector>

namespace mrrope {

using TextRow = std::vector<std::string>;

// Columns as wide as their widest cell, two blanks between, no blanks at the end of a line. The
// columns listed in `left` are aligned to the left, the others to the right.
std::string aligned(const std::vector<TextRow>& rows, const std::vector<std::size_t>& left = {0});

// RFC 4180, with plain line feeds: one line with its line feed. Cells with a comma, a quote or a
// line break are quoted.
std::string csv_line(const std::vector<std::string>& cells);

}  // namespace mrrope
