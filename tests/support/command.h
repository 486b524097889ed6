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

// A folder that is empty at first and gone afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);

}  // namespace mrrope
