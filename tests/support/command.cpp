// SPDX-License-Identifier: Apache-2.0
#include "support/command.h"

#include <sys/wait.h>

#include <cstdlib>

#include "support/temp_folder.h"

namespace mrrope {

CommandResult run_command(const std::string& arguments) {
  const test::TempFolder folder;
  const std::string line = std::string(MRROPE_COMMAND) + " " + arguments + " >" +
                           folder.file("out") + " 2>" + folder.file("err") + " </dev/null";
  const int status = std::system(line.c_str());
  CommandResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = test::read_file(folder.file("out"));
  result.err = test::read_file(folder.file("err"));
  return result;
}

}  // namespace mrrope
