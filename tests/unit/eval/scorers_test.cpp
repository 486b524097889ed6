// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "eval/score/answer_text.h"
#include "eval/tasks/infinitebench/infinitebench.h"
#include "eval/tasks/longbench/longbench.h"
#include "eval/tasks/ruler/ruler.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

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

std::string words_of(const std::vector<std::string>& words) { return json(words).dump(); }

TEST(Scorers, OfOneAnswer) {
  test::expect_functions(
      "scorers",
      {{"infinitebench",  // TASK | ANSWER as JSON | what was said: official and lenient
        [](auto& a) {
          const ordered_json record = {{"answer", ordered_json::parse(a[1])}, {"text", a[2]}};
          const auto scores = infinitebench_rules().grade("infinitebench/" + a[0], record);
          return cat(scores[0].value, " ", scores[1].value);
        }},
       {"words", [](auto& a) { return words_of(rouge_words(a[0])); }},
       {"stems", [](auto& a) { return words_of(rouge_words(a[0], Stemming::on)); }},
       {"recall", [](auto& a) { return cat(rouge1_recall(a[0], a[1])); }},
       {"lsum", [](auto& a) { return cat(rouge_lsum(a[0], a[1])); }},
       {"decided",  // where "one" and "two" are expected
        [](auto& a) {
          return cat(ruler_rules().decided(a[0], {"one", "two"}, a[1]));
        }},
       {"characters", [](auto& a) { return cat(to_characters(a[0]).size()); }},
       {"utf8", [](auto& a) { return to_utf8(to_characters(a[0])); }},
       {"lower", [](auto& a) { return to_utf8(lower(to_characters(a[0]))); }},
       {"upper", [](auto& a) { return to_utf8(upper(to_characters(a[0]))); }},
       {"contains", [](auto& a) { return cat(contains_answer(a[0], a[1])); }},
       {"porter", [](auto& a) { return porter_stem(a[0]); }}});
}

TEST(Scorers, UnknownScorerIsRefused) {
  const ordered_json record = {{"text", "a"}, {"expected", {"a"}}, {"answer", "a"}};
  for (const SampleRules* rules : {&ruler_rules(), &infinitebench_rules(), &longbench_rules()}) {
    EXPECT_THROW(rules->grade("haiku", record), Error);
  }
  EXPECT_EQ(infinitebench_rules().decided, nullptr);
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

}  // namespace
}  // namespace mrrope::eval
