// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include "base/words.h"

namespace mrrope {
namespace {

TEST(Text, DurationInWords) {
  EXPECT_EQ(duration_text(0.2), "1 s");
  EXPECT_EQ(duration_text(185), "3 min 05 s");
  EXPECT_EQ(duration_text(7620), "2 h 07 min");
  EXPECT_EQ(duration_text(1.3e9), "41 years");
  EXPECT_EQ(duration_text(1e300), "over 1000 years");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "unknown");
}

TEST(Text, NumberIsAllOfAText) {
  EXPECT_EQ(parse_double("1.5"), 1.5);
  EXPECT_EQ(parse_double("-2e3"), -2000);
  EXPECT_EQ(parse_double(".5"), 0.5);
  for (const char* text :
       {"", " 1", "1 ", "1x", "x", "0x10", "nan", "inf", "1e999", "--1", "e", "."}) {
    EXPECT_EQ(parse_double(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_double(std::string("1\0", 2)), std::nullopt);
}

TEST(Text, ShellWordIsQuotedOnlyWhereNeeded) {
  EXPECT_EQ(shell_word("models/a-1.gguf"), "models/a-1.gguf");
  EXPECT_EQ(shell_word("a b's"), "'a b'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace mrrope
