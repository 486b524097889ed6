// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace mrrope {
namespace {

TEST(Text, DurationInWords) {
  EXPECT_EQ(duration_text(0.2), "1 s");
  EXPECT_EQ(duration_text(185), "3 min 05 s");
  EXPECT_EQ(duration_text(7620), "2 h 07 min");
  EXPECT_EQ(duration_text(1e300), "unknown");
}

TEST(Text, ShellWordIsQuotedOnlyWhereNeeded) {
  EXPECT_EQ(shell_word("models/a-1.gguf"), "models/a-1.gguf");
  EXPECT_EQ(shell_word("a b's"), "'a b'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace mrrope
