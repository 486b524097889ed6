// SPDX-License-Identifier: Apache-2.0
#include "eval/score/rouge.h"

#include <gtest/gtest.h>

namespace mrrope::eval {
namespace {

TEST(Rouge, WordsAreLowerCaseRuns) {
  EXPECT_EQ(rouge_words("The BOX-2, it's\n3.14!"),
            (std::vector<std::string>{"the", "box", "2", "it", "s", "3", "14"}));
  EXPECT_TRUE(rouge_words(" .,-\n").empty());
  EXPECT_EQ(rouge_words("na\xc3\xafve"), (std::vector<std::string>{"na", "ve"}));
}

TEST(Rouge, RecallCountsRepetitions) {
  EXPECT_EQ(rouge1_recall("a b a c", "A x a b"), 0.75);
  EXPECT_EQ(rouge1_recall("a b a c", "a b"), 0.5);
  EXPECT_EQ(rouge1_recall("a", "a a a a"), 1);  // recall: more does no harm
  EXPECT_EQ(rouge1_recall("under the blue stone", "It is under a stone."), 0.5);
  EXPECT_EQ(rouge1_recall("123456", "1234567"), 0);
  EXPECT_EQ(rouge1_recall("word", ""), 0);
  EXPECT_EQ(rouge1_recall("", "word"), 0);
}

TEST(Rouge, ContainmentIsCaseSensitiveAndWholeWord) {
  EXPECT_TRUE(contains_answer("123456", " 123456."));
  EXPECT_FALSE(contains_answer("123456", " 1234567."));
  EXPECT_FALSE(contains_answer("123456", "0123456"));
  EXPECT_TRUE(contains_answer("123456", "0123456 or 123456"));
  EXPECT_FALSE(contains_answer("blue stone", "Blue stone"));
  EXPECT_FALSE(contains_answer("blue stone", "blue, stone"));
  EXPECT_TRUE(contains_answer("(x)", "f(x)y"));
  EXPECT_FALSE(contains_answer("", "anything"));
}

}  // namespace
}  // namespace mrrope::eval
