// SPDX-License-Identifier: Apache-2.0
#include "eval/score/rouge.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "eval/score/porter.h"

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

// Recorded from the Python package by tools/record_rouge.py.
TEST(Rouge, RecallIsThatOfRougeScoreWithAndWithoutStems) {
  std::ifstream file(MRROPE_GOLDEN_DIR "/rouge.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["pairs"].size(), 50u);
  for (const nlohmann::json& pair : golden["pairs"]) {
    const auto expected = pair["expected"].get<std::string>();
    const auto text = pair["text"].get<std::string>();
    EXPECT_DOUBLE_EQ(rouge1_recall(expected, text), pair["recall"].get<double>()) << pair;
    EXPECT_DOUBLE_EQ(rouge1_recall(expected, text, Stemming::on), pair["stemmed"].get<double>())
        << pair;
  }
}

TEST(Rouge, ShortWordsAreNotStemmed) {
  EXPECT_EQ(rouge_words("gas ties Ponies", Stemming::on),
            (std::vector<std::string>{"gas", "tie", "poni"}));
  EXPECT_EQ(porter_stem("dying"), "die");
  EXPECT_EQ(porter_stem("is"), "is");
  EXPECT_EQ(porter_stem(""), "");
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
