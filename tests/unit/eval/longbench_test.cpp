// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/longbench/longbench.h"

#include "base/text.h"
#include "eval/samples/sample.h"
#include "models/reading_model.h"
#include "support/result_rows.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

ordered_json item(int id, const char* domain, const char* answer, std::size_t size = 50) {
  return {{"_id", cat("q", id)}, {"domain", domain},
          {"sub_domain", "x"},   {"difficulty", id % 2 == 0 ? "easy" : "hard"},
          {"length", "short"},   {"question", " Which? "},
          {"choice_A", "one"},   {"choice_B", "two"},
          {"choice_C", "three"}, {"choice_D", "four"},
          {"answer", answer},    {"context", std::string(size, 'x')}};
}

ScriptedOptions roomy() { return {.context = 1 << 14}; }

class Longbench : public testing::Test {
 protected:
  Longbench()
      : model_(roomy(), [](const std::string&) { return "**The correct answer is (B)**"; }),
        frame_(model_, {"off"}) {
    options_.length = 2000;
  }
  SampleSuite read(const std::string& content, const char* name = "data.json") {
    write_file(folder_.path() / name, content);
    notes_.clear();
    return read_longbench(frame_, folder_.path() / name, options_, notes_);
  }
  ResultTable run(const SampleSuite& suite) {
    return run_in_memory(model_, {method(model_, "none")}, suite).table;
  }
  double score(const ResultTable& results, const std::string& row) {
    const ResultRow* s = results.find("none", results.lengths[0], "accuracy", {}, row);
    return s == nullptr ? -1 : s->estimate.value;
  }
  TempFolder folder_;
  ReadingModel model_;
  PromptFrame frame_;
  LongbenchOptions options_;
  std::vector<std::string> notes_;
};

TEST_F(Longbench, ScoresByDomainDifficultyAndLength) {
  const ordered_json data = {item(1, "Single-Document QA", "B"), item(2, "Single-Document QA", "A"),
                             item(3, "Code Repository Understanding", "B")};
  const ResultTable results = run(read(data.dump()));
  EXPECT_NEAR(score(results, "longbench-v2"), 2.0 / 3, 1e-12);
  EXPECT_EQ(score(results, "longbench-v2/SD"), 0.5);
  EXPECT_EQ(score(results, "longbench-v2/CU"), 1);
  EXPECT_EQ(score(results, "longbench-v2/hard"), 1);
  EXPECT_EQ(score(results, "longbench-v2/easy"), 0);
  EXPECT_NEAR(score(results, "longbench-v2/short"), 2.0 / 3, 1e-12);
  EXPECT_EQ(results.more["unanswered"], 0u);
  EXPECT_TRUE(contains(model_.prompts[0], "\nWhich?\n(A) one"));
}

TEST_F(Longbench, ReplyWithoutALetterIsWrongAndCounted) {
  ReadingModel silent_model(roomy(), [](const std::string&) { return "B, I suppose"; });
  const SampleSuite suite = read(ordered_json::array({item(1, "Multi-Document QA", "B")}).dump());
  const ResultTable results =
      run_in_memory(silent_model, {method(silent_model, "none")}, suite).table;
  EXPECT_EQ(score(results, "longbench-v2"), 0);
  EXPECT_EQ(results.more["unanswered"], 1u);
}

TEST_F(Longbench, DropsOrTruncatesLongItems) {
  const std::string data = ordered_json::array({item(1, "Multi-Document QA", "B"),
                                                item(2, "Multi-Document QA", "B", 5000)})
                               .dump();
  SampleSuite suite = read(data);
  EXPECT_EQ(suite.sets[0].count, 1u);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_TRUE(contains(notes_[0], "1 of 2 items"));
  options_.truncate = true;
  suite = read(data);
  ASSERT_EQ(suite.sets[0].count, 2u);
  const Sample cut = suite.sets[0].make(1);
  EXPECT_LE(cut.prompt.size() + 128, 2000u);
  EXPECT_TRUE(contains(cut.text, "The correct answer is (X)"));
  EXPECT_EQ(run(suite).more["truncated"], 1u);
}

TEST_F(Longbench, ComparesTheLogitsOfFourLetters) {
  options_.mode = "letters";
  const SampleSuite suite = read(ordered_json::array({item(1, "Multi-Document QA", "A"),
                                                      item(2, "Multi-Document QA", "B", 60)})
                                     .dump());
  ASSERT_EQ(suite.sets[0].letters.size(), 4u);
  EXPECT_EQ(suite.sets[0].letters[1], std::vector<Token>{'B'});  // " B" is two tokens here
  const RunInMemory ran = run_in_memory(model_, {method(model_, "none")}, suite);
  for (const ordered_json& record : ran.units.at(0).at("samples")) {
    const auto logits = record.at("logits").get<std::vector<double>>();
    ASSERT_EQ(logits.size(), 4u);
    const auto top = std::max_element(logits.begin(), logits.end()) - logits.begin();
    EXPECT_EQ(record.at("text"), std::string(1, char('A' + top)));
  }
  EXPECT_TRUE(model_.prompts.empty());  // nothing was generated
}

TEST_F(Longbench, ReadsJsonLines) {
  const ordered_json good = item(1, "Multi-Document QA", "A");
  EXPECT_EQ(read(good.dump() + "\n", "data.jsonl").sets[0].count, 1u);
}

}  // namespace
}  // namespace mrrope::eval
