// SPDX-License-Identifier: Apache-2.0
// The report that evaluations and the demo write.
#pragma once

#include <string>
#include <vector>

namespace mrrope::cli {

// Writes the page of these run folders to `path`, with a note.
void write_report(const std::vector<std::string>& folders, const std::string& path);

}  // namespace mrrope::cli
