// SPDX-License-Identifier: Apache-2.0
// Plain tables for a terminal.
#pragma once

#include <string>
#include <vector>

namespace mrrope {

using TextRow = std::vector<std::string>;

// Columns as wide as their widest cell, two blanks between, no blanks at the end of a line. The
// columns listed in `left` are aligned to the left, the others to the right.
std::string aligned(const std::vector<TextRow>& rows, const std::vector<std::size_t>& left = {0});

}  // namespace mrrope
