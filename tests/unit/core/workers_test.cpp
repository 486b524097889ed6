// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>

#include "mrrope/rotary.h"

namespace mrrope {
namespace {

TEST(Workers, CallEveryPartOnce) {
  for (const int threads : {1, 2, 5}) {
    Workers workers(threads);
    for (const int parts : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(parts));
      workers.run(
          [](void* context, int index) {
            ++(*static_cast<std::vector<std::atomic<int>>*>(context))[std::size_t(index)];
          },
          &calls, parts);
      for (const auto& count : calls) EXPECT_EQ(count, 1);
    }
  }
}

}  // namespace
}  // namespace mrrope
