// SPDX-License-Identifier: Apache-2.0
// Runs the real command and keeps its output; the names that nearly every test of it uses.
#pragma once

#include <sys/types.h>

#include "support/test.h"

namespace mrrope {

inline const std::string kModel = MRROPE_TINY_MODEL;

struct CommandResult {
  int exit_code = -1;  // 128 + N where signal N ended it, as in a shell
  std::string out;
  std::string err;
};

// mrrope with these arguments, through a shell: quote what needs it. `before`: for the shell, such
// as "ulimit -f 1;".
CommandResult run_command(const std::string& arguments, const std::string& before = {});

// The same, where it has to end with this exit code and to print these words.
CommandResult expect_run(const std::string& arguments, int exit_code = 0,
                         std::initializer_list<std::string> words = {},
                         const std::string& before = {});

// What it prints, where it has to succeed.
json expect_json(const std::string& arguments);

// An item of LongBench v2; the answer is B.
json longbench_item(const std::string& id, const std::string& domain, const std::string& context);

// Of a file that may not be there yet.
std::size_t lines_in(const std::filesystem::path& file);

// A command in the background.
class RunningCommand {
 public:
  explicit RunningCommand(const std::string& arguments, const std::string& before = {});
  ~RunningCommand();
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  bool running();
  void send(int signal);
  CommandResult wait();

 private:
  TempFolder folder_;
  pid_t process_ = -1;
  std::optional<int> status_;
};

}  // namespace mrrope
