// SPDX-License-Identifier: Apache-2.0
// Runs the real command and keeps what it said.
#pragma once

#include <string>

namespace mrrope {

struct CommandResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// mrrope with these arguments, through a shell: quote what needs it.
CommandResult run_command(const std::string& arguments);

}  // namespace mrrope
