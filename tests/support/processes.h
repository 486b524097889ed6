// SPDX-License-Identifier: Apache-2.0
// The children of a process, as /proc lists them.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace mrrope::test {

// Each with its state: 'R', 'S', 'Z' and so on.
inline std::map<pid_t, char> children_of(pid_t parent) {
  std::map<pid_t, char> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    std::string text;
    if (pid <= 0 || !std::getline(std::ifstream(entry.path() / "stat"), text)) continue;
    const std::size_t name = text.rfind(')');  // "PID (NAME) STATE PARENT ..."
    if (name == std::string::npos || std::atoi(text.c_str() + name + 4) != parent) continue;
    children[pid] = text[name + 2];
  }
  return children;
}

// Those that this process did not have before.
inline std::map<pid_t, char> new_children(const std::map<pid_t, char>& before) {
  std::map<pid_t, char> fresh;
  for (const auto& [pid, state] : children_of(::getpid())) {
    if (before.count(pid) == 0) fresh[pid] = state;
  }
  return fresh;
}

}  // namespace mrrope::test
