// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/text_table.h"

namespace mrrope {
namespace {

TEST(Csv, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(csv_line({"a", "1.5", ""}), "a,1.5,\n");
  EXPECT_EQ(csv_line({"a,b", "say \"hi\"", "two\nlines", "\r"}),
            "\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\"\r\"\n");
  EXPECT_EQ(csv_line({}), "\n");
}

TEST(TextTable, AlignsColumnsWithoutTrailingBlanks) {
  EXPECT_EQ(aligned({{"name", "n"}, {"x", "100"}, {"long name", ""}}),
            "name         n\nx          100\nlong name\n");
  EXPECT_EQ(aligned({{"a", "bb"}, {"ccc", "d"}}, {1}), "  a  bb\nccc  d\n");
  EXPECT_EQ(aligned({{"a", "bb"}, {"ccc", "d"}}, {}), "  a  bb\nccc   d\n");
}

}  // namespace
}  // namespace mrrope
