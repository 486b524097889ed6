// SPDX-License-Identifier: Apache-2.0
// Other spellings of flags: names that people know from other programs, and those that a flag had
// in the version before, which work with a note.
#pragma once

#include <string>
#include <vector>

namespace mrrope::cli {

// The arguments in the spelling of --help. verb: "eval needle".
std::vector<std::string> with_current_flags(const std::string& verb,
                                            const std::vector<std::string>& arguments);

}  // namespace mrrope::cli
