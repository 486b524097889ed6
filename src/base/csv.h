// SPDX-License-Identifier: Apache-2.0
// Comma-separated values (RFC 4180, with plain line feeds).
#pragma once

#include <string>
#include <vector>

namespace mrrope {

// One line with its line feed. Cells with a comma, a quote or a line break are quoted.
std::string csv_line(const std::vector<std::string>& cells);

}  // namespace mrrope
