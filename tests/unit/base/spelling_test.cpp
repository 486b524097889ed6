// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/words.h"

namespace mrrope {
namespace {

TEST(Spelling, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("plan", ""), 4u);
  EXPECT_EQ(edit_distance("plan", "plan"), 0u);
  EXPECT_EQ(edit_distance("plan", "plane"), 1u);
  EXPECT_EQ(edit_distance("plan", "pan"), 1u);
  EXPECT_EQ(edit_distance("plan", "plen"), 1u);
  EXPECT_EQ(edit_distance("plan", "paln"), 1u);  // neighbours swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Spelling, SuggestsOnlyWhatIsClose) {
  const std::vector<std::string> words = {"inspect", "plan", "export", "report"};
  EXPECT_EQ(closest("inspct", words), "inspect");
  EXPECT_EQ(closest("PLNA", words), "plan");
  EXPECT_EQ(closest("reprot", words), "report");
  EXPECT_EQ(closest("fly", words), "");
  EXPECT_EQ(closest("", words), "");
  EXPECT_EQ(closest(std::string(1 << 20, 'a'), words), "");
  EXPECT_EQ(did_you_mean("pla", words), "did you mean plan? ");
  EXPECT_EQ(did_you_mean("fly", words), "");
}

}  // namespace
}  // namespace mrrope
