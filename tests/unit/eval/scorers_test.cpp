// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "eval/score/answer_text.h"
#include "eval/tasks/infinitebench/infinitebench.h"
#include "eval/tasks/longbench/longbench.h"
#include "eval/tasks/ruler/ruler.h"
#include "mrrope/error.h"
#include "support/temp_folder.h"

namespace mrrope::eval {
namespace {

using nlohmann::ordered_json;

// What the original scorers say, answer by answer; tools/record_scorers.py wrote it down.
TEST(Scorers, MatchTheOriginals) {
  const ordered_json golden =
      ordered_json::parse(test::read_file(std::string(MRROPE_GOLDEN_DIR) + "/scorers.json"));
  std::map<std::string, int> rows;
  for (const ordered_json& row : golden["rows"]) {
    const auto scorer = row["scorer"].get<std::string>();
    const auto text = row["text"].get<std::string>();
    ++rows[scorer];
    if (scorer == "longbench-v2") {
      const char letter = longbench_letter(text);
      const ordered_json said = letter == 0 ? ordered_json() : ordered_json(std::string(1, letter));
      EXPECT_EQ(said, row["value"]) << row;
      continue;
    }
    ordered_json record = {{"text", text}, {"expected", ordered_json::array()}};
    if (scorer.find('/') == std::string::npos) {
      record["expected"] = row["answer"];
    } else {
      record["answer"] = row["answer"];
    }
    const bool infinite = scorer.find('/') != std::string::npos;
    const SampleRules& rules = infinite ? infinitebench_rules() : ruler_rules();
    const std::vector<Score> scores = rules.grade(scorer, record);
    ASSERT_FALSE(scores.empty());
    // RULER rounds percentages to two digits.
    const double tolerance = scorer.find('/') == std::string::npos ? 6e-5 : 1e-12;
    EXPECT_NEAR(scores[0].value, row["value"].get<double>(), tolerance) << row;
  }
  EXPECT_EQ(rows.size(), 15u);  // 12 of InfiniteBench, 2 of RULER, 1 of LongBench-v2
  for (const auto& [scorer, count] : rows) EXPECT_GE(count, 6) << scorer;
}

std::vector<Score> scores(const std::string& task, const ordered_json& answer, const char* text) {
  return infinitebench_rules().grade("infinitebench/" + task, {{"answer", answer}, {"text", text}});
}

double lenient(const char* task, const ordered_json& answer, const char* text) {
  return scores(task, answer, text)[1].value;
}

TEST(Scorers, LenientForgivesWhatTheOfficialParserMisses) {
  const ordered_json debug = {"parse_row", "B"};
  EXPECT_EQ(scores("code_debug", debug, " B\n")[0].value, 0);
  for (const char* said :
       {" B\n", "B", "(B)", "The answer is B", "it is in parse_row", "Option B"}) {
    EXPECT_EQ(lenient("code_debug", debug, said), 1) << said;
  }
  for (const char* said : {"A", "C, not B", "", "parse", "Because of it"}) {
    EXPECT_EQ(lenient("code_debug", debug, said), 0) << said;
  }
  EXPECT_EQ(lenient("passkey", "71432", "key 1: 71432"), 1);
  EXPECT_EQ(lenient("passkey", "71432", "714321"), 0);
  EXPECT_EQ(lenient("longdialogue_qa_eng", {"Ann Lee"}, "It is ann lee."), 1);
  EXPECT_EQ(lenient("longdialogue_qa_eng", {"Ann Lee"}, "It is Ann."), 0);
  EXPECT_EQ(lenient("math_find", 9, "9.0"), 1);
  EXPECT_EQ(lenient("math_find", 9, "9.5"), 0);
  EXPECT_EQ(lenient("code_run", -17, "-17, I think"), 1);
  EXPECT_EQ(lenient("longbook_qa_eng", {"the red barn"}, "In a red barn, he said"), 1);
}

TEST(Scorers, KnowWhenTheScoreIsFinal) {
  const auto decided = ruler_rules().decided;
  EXPECT_FALSE(decided("string_match_all", {"one", "two"}, "One"));
  EXPECT_TRUE(decided("string_match_all", {"one", "two"}, "One Two"));
  EXPECT_TRUE(decided("string_match_part", {"one", "two"}, "two"));
  EXPECT_EQ(infinitebench_rules().decided, nullptr);
}

TEST(Scorers, UnknownScorerIsRefused) {
  const ordered_json record = {{"text", "a"}, {"expected", {"a"}}, {"answer", "a"}};
  for (const SampleRules* rules : {&ruler_rules(), &infinitebench_rules(), &longbench_rules()}) {
    EXPECT_THROW(rules->grade("haiku", record), Error);
  }
}

TEST(Unicode, ReadsBrokenTextByteByByte) {
  EXPECT_EQ(to_characters("a\xc3\xa9\xff").size(), 3u);
  EXPECT_EQ(to_characters("\xe4\xba").size(), 2u);
  EXPECT_EQ(to_utf8(to_characters("\xe4\xba\xac \xf0\x9f\x99\x82 \xc3\xa9")),
            "\xe4\xba\xac \xf0\x9f\x99\x82 \xc3\xa9");
  EXPECT_EQ(to_utf8(lower(to_characters("\xc3\x89\xd0\x96"))), "\xc3\xa9\xd0\xb6");
  EXPECT_EQ(to_utf8(upper(to_characters("\xc3\xa9\xd0\xb6z"))), "\xc3\x89\xd0\x96Z");
}

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
  const ordered_json golden =
      ordered_json::parse(test::read_file(std::string(MRROPE_GOLDEN_DIR) + "/rouge.json"));
  ASSERT_EQ(golden["pairs"].size(), 50u);
  for (const ordered_json& pair : golden["pairs"]) {
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

TEST(RougeLsum, CountsEachWordOnce) {
  EXPECT_DOUBLE_EQ(rouge_lsum("one two\nthree", "one two\nthree"), 1);
  EXPECT_DOUBLE_EQ(rouge_lsum("", "one"), 0);
  EXPECT_DOUBLE_EQ(rouge_lsum("one", ""), 0);
  EXPECT_DOUBLE_EQ(rouge_lsum("one one", "one"), 2.0 / 3);
}

}  // namespace
}  // namespace mrrope::eval
