// SPDX-License-Identifier: Apache-2.0
// The report that evaluations and the demo leave behind.
#pragma once

#include <string>
#include <vector>

namespace mrrope::cli {

// Makes the page of these run folders, writes it to `path` and says so in a note.
void write_report(const std::vector<std::string>& folders, const std::string& path);

}  // namespace mrrope::cli
