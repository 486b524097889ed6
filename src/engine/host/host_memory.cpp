// SPDX-License-Identifier: Apache-2.0
#include "engine/host/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

namespace mrrope::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// Empty for a missing file and for a word such as "max".
std::optional<std::uint64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

// The value of a line "key value", as memory.stat and meminfo have them.
std::uint64_t field(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return 0;
}

// The names of one version's files.
struct Version {
  const char* limit;
  const char* used;
  const char* inactive;
  const char* active;
};
constexpr Version kTwo = {"memory.max", "memory.current", "inactive_file", "active_file"};
constexpr Version kOne = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                          "total_active_file"};

std::uint64_t allowed_by(const fs::path& group, const Version& version) {
  const auto limit = number_in(group / version.limit);
  const auto used = number_in(group / version.used);
  if (!limit || !used) return kNoLimit;
  const fs::path stat = group / "memory.stat";
  const std::uint64_t cached =
      std::min(*used, field(stat, version.inactive) + field(stat, version.active));
  const std::uint64_t taken = *used - cached;
  return taken < *limit ? *limit - taken : 0;
}

// A group and all that it is part of, up to the mounted root. In a container the root may be the
// process's own group while /proc names it as seen from outside, so a missing folder is skipped.
std::uint64_t allowed_along(const fs::path& mount, fs::path group, const Version& version) {
  std::uint64_t allowed = allowed_by(mount, version);
  for (group = group.relative_path(); !group.empty(); group = group.parent_path()) {
    allowed = std::min(allowed, allowed_by(mount / group, version));
  }
  return allowed;
}

std::uint64_t allowed_by_groups(const fs::path& root) {
  const fs::path mount = root / "sys/fs/cgroup";
  std::uint64_t allowed = kNoLimit;
  // Lines "number:controllers:path"; version 2 has number 0 and no controllers.
  std::ifstream file(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 1);
    if (controllers == ",,") {
      allowed = std::min(allowed, allowed_along(mount, group, kTwo));
    } else if (controllers.find(",memory,") != std::string::npos) {
      allowed = std::min(allowed, allowed_along(mount / "memory", group, kOne));
    }
  }
  return allowed;
}

}  // namespace

std::uint64_t available_memory(const fs::path& root) {
  std::uint64_t available = field(root / "proc/meminfo", "MemAvailable:") * 1024;
  if (available == 0) {
    available = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  }
  return std::min(available, allowed_by_groups(root));
}

}  // namespace mrrope::engine
