// SPDX-License-Identifier: Apache-2.0
// Plain tables of results for a terminal.
#pragma once

#include <string>
#include <vector>

namespace mrrope {

using TextRow = std::vector<std::string>;

// The first column to the left, the others to the right, two blanks between.
std::string aligned(const std::vector<TextRow>& rows);

}  // namespace mrrope
