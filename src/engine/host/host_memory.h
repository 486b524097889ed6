// SPDX-License-Identifier: Apache-2.0
// How much more memory this process may use on the host.
#pragma once

#include <cstdint>
#include <filesystem>

namespace mrrope::engine {

// Bytes: the kernel's estimate, or what a control group (version 1 or 2) still allows if that is
// less. Cached pages of files count as free in both, since the kernel drops them on demand. root:
// the folder that has proc and sys/fs/cgroup.
std::uint64_t available_memory(const std::filesystem::path& root = "/");

}  // namespace mrrope::engine
