// SPDX-License-Identifier: Apache-2.0
// Control groups of both versions, made of plain files.

#include "engine/llama/local.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::string mib(std::uint64_t n) { return std::to_string(n * kMiB) + "\n"; }

class HostMemory : public testing::Test {
 protected:
  HostMemory() {
    folder_.write("proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable: 8192000 kB\n");
  }

  void group(const std::string& path, std::uint64_t limit, std::uint64_t used,
             std::uint64_t inactive, std::uint64_t active) const {
    const std::string at = "sys/fs/cgroup/" + path + "/memory.";
    folder_.write(at + "max", limit == 0 ? "max\n" : mib(limit));
    folder_.write(at + "current", mib(used));
    folder_.write(at + "stat",
                  "anon 1\nfile 7\ninactive_file " + mib(inactive) + "active_file " + mib(active));
  }
  void old_group(const std::string& path, std::uint64_t limit, std::uint64_t used,
                 std::uint64_t cached) const {
    const std::string at = "sys/fs/cgroup/memory/" + path + "/memory.";
    folder_.write(at + "limit_in_bytes", limit == 0 ? "9223372036854771712\n" : mib(limit));
    folder_.write(at + "usage_in_bytes", mib(used));
    folder_.write(at + "stat",
                  "inactive_file 5\ntotal_inactive_file " + mib(cached) + "total_active_file 0\n");
  }
  std::uint64_t available() const { return available_memory(folder_.path()) / kMiB; }

  test::TempFolder folder_;
};

TEST_F(HostMemory, WithoutCgroupsIsTheKernelsEstimate) { EXPECT_EQ(available(), 8000U); }

TEST_F(HostMemory, CachedFilesCountAsFree) {
  folder_.write("proc/self/cgroup", "0::/\n");
  group("", 2000, 1900, 1500, 100);
  EXPECT_EQ(available(), 1700U);
}

TEST_F(HostMemory, NeverExceedsTheKernelsEstimate) {
  folder_.write("proc/self/cgroup", "0::/\n");
  group("", 20000, 100, 0, 0);
  EXPECT_EQ(available(), 8000U);
}

TEST_F(HostMemory, TightestCgroupOnThePathCounts) {
  folder_.write("proc/self/cgroup", "0::/user.slice/job.scope\n");
  group("user.slice", 1000, 400, 0, 0);
  group("user.slice/job.scope", 3000, 300, 0, 0);
  EXPECT_EQ(available(), 600U);
  group("user.slice", 0, 400, 0, 0);
  EXPECT_EQ(available(), 2700U);
}

TEST_F(HostMemory, FullCgroupHasNothingLeft) {
  folder_.write("proc/self/cgroup", "0::/\n");
  group("", 100, 200, 0, 0);
  EXPECT_EQ(available(), 0U);
}

TEST_F(HostMemory, ReadsCgroupVersionOne) {
  folder_.write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/docker/a\n0::/\n");
  old_group("docker/a", 1000, 900, 700);
  EXPECT_EQ(available(), 800U);
  old_group("docker/a", 0, 900, 700);
  EXPECT_EQ(available(), 8000U);
}

TEST_F(HostMemory, InAContainerTheMountedRootIsTheCgroup) {
  folder_.write("proc/self/cgroup", "4:memory:/docker/not-mounted-here\n");
  old_group("", 1000, 900, 700);
  EXPECT_EQ(available(), 800U);
}

}  // namespace
}  // namespace mrrope::engine
