// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/infinitebench/infinitebench.h"

#include "base/text.h"
#include "eval/results/result_table.h"
#include "eval/samples/sample.h"
#include "eval/tasks/ruler/ruler.h"
#include "models/reading_model.h"
#include "support/result_rows.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

ScriptedOptions roomy() { return {.context = 1 << 15}; }

class InfiniteData : public testing::Test {
 protected:
  InfiniteData() : model_(roomy()), frame_(model_, {"off"}) {}
  SampleSuite read(const std::string& task, const std::string& content,
                   InfiniteOptions options = {}) {
    write_file(folder_.path() / (task + ".jsonl"), content);
    options.tasks = {task};
    if (options.length == 0) options.length = 2000;
    notes_.clear();
    return read_infinitebench(frame_, folder_.path(), options, notes_);
  }
  TempFolder folder_;
  ScriptedModel model_;
  PromptFrame frame_;
  std::vector<std::string> notes_;
};

TEST_F(InfiniteData, CutsTheMiddleAndLeavesRoomForTheAnswer) {
  std::string context = "BEGIN";
  for (int i = 0; i < 600; ++i) context += " filler";
  const SampleSuite suite =
      read("kv_retrieval",
           cat(R"({"id": "a", "context": ")", context, R"(END", "input": "Key: k", "answer": "v"})",
               "\n", R"({"id": "b", "context": "short", "input": "Key: k", "answer": "v"})"));
  ASSERT_EQ(suite.sets[0].count, 2u);
  const Sample cut = suite.sets[0].make(0);
  EXPECT_LE(cut.prompt.size() + 50, 2000u);
  EXPECT_GE(cut.prompt.size() + 50, 1980u);
  EXPECT_GT(cut.more.at("truncated").get<int>(), 2000);
  EXPECT_TRUE(contains(cut.text, "BEGIN"));
  EXPECT_TRUE(contains(cut.text, "END\n\nKey: k"));
  EXPECT_FALSE(suite.sets[0].make(1).more.contains("truncated"));
  const ResultTable results = run_in_memory(model_, {method(model_, "none")}, suite).table;
  EXPECT_EQ(results.more["truncated"], 1u);
  EXPECT_EQ(results.more["prompts"], 2u);
  EXPECT_TRUE(contains(to_text(results), "1 of 2 prompts"));
}

TEST_F(InfiniteData, ChoosesWithinARangeAndRecordsTheChoice) {
  std::string content;
  for (int i = 0; i < 40; ++i) {
    content += cat(R"({"id": )", i, R"(, "context": ")", std::string(std::size_t(20 * i), 'x'),
                   R"(", "input": "?", "answer": "1"})", "\n");
  }
  InfiniteOptions options;
  options.samples = 5;
  options.min_tokens = 400;
  options.max_tokens = 700;
  const SampleSuite suite = read("passkey", content, options);
  ASSERT_EQ(suite.sets[0].count, 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    const std::size_t tokens = suite.sets[0].make(i).prompt.size();
    EXPECT_GE(tokens, 400u);
    EXPECT_LE(tokens, 700u);
  }
  EXPECT_EQ(suite.settings["files"][0]["ids"].size(), 5u);
  EXPECT_EQ(read("passkey", content, options).settings, suite.settings);
  options.seed = 2;
  EXPECT_NE(read("passkey", content, options).settings["files"][0]["ids"],
            suite.settings["files"][0]["ids"]);
  ASSERT_FALSE(notes_.empty());
  EXPECT_TRUE(contains(notes_[0], "outside the token range"));
}

// math_find of the official data has too few tokens for the paper's range.
TEST_F(InfiniteData, AMeanOverFewerTasksIsLabelled) {
  const auto line = [](std::size_t size) {
    return cat(R"({"id": 1, "input": "The largest number of all", "answer": 7, "context": ")",
               std::string(size, 'x'), "\"}\n");
  };
  write_file(folder_.path() / "passkey.jsonl", line(1000));
  write_file(folder_.path() / "number_string.jsonl", line(1000));
  for (const std::size_t size : {1000, 200}) {
    write_file(folder_.path() / "math_find.jsonl", line(size));
    InfiniteOptions options{
        .tasks = {"passkey", "number_string", "math_find"}, .length = 4000, .min_tokens = 900};
    const SampleSuite suite = read_infinitebench(frame_, folder_.path(), options, notes_);
    const ResultTable r = run_in_memory(model_, {method(model_, "none")}, suite).table;
    const bool all = size == 1000;
    const std::string row = all ? "infinitebench" : "infinitebench (mean of 2 of 3 tasks)";
    const ResultRow* mean = r.find("none", 4000, "official", {}, row);
    ASSERT_NE(mean, nullptr);
    EXPECT_EQ(mean->estimate.n, all ? 3u : 2u);
    EXPECT_FALSE(std::isnan(mean->estimate.value));
    const std::string text = to_text(r);
    EXPECT_TRUE(contains(text, all ? "mean of 3 " : "mean of 2 of 3 "));
    if (!all) {
      EXPECT_EQ(r.find("none", 4000, "official"), nullptr);
    }
  }
}

TEST_F(InfiniteData, NamesMissingFilesAndTasks) {
  InfiniteOptions missing{.tasks = {"code_debug"}, .length = 2000};
  EXPECT_ERROR(read_infinitebench(frame_, folder_.path(), missing, notes_), failed,
               "has no code_debug.jsonl");
  missing.tasks = {"math_calc"};
  write_file(folder_.path() / "math_calc.jsonl",
             R"({"id": 1, "context": "c", "input": "i", "answer": "1"})");
  EXPECT_ERROR(read_infinitebench(frame_, folder_.path(), missing, notes_), usage, "30000");
}

// What a careful reader answers to each of the generated tasks.
std::string answer_by_reading(const std::string& prompt) {
  const auto after = [&](const std::string& start, std::size_t size) {
    return prompt.substr(prompt.find(start) + start.size(), size);
  };
  if (prompt.find("pass key") != std::string::npos) return " " + after("The pass key is ", 5);
  if (prompt.find("sequence of digits") != std::string::npos) {
    return " " + after("The sequence of digits is ", 10);
  }
  if (prompt.find("JSON data") != std::string::npos) {
    const std::string key = prompt.substr(prompt.rfind("Key: ") + 5, 38);
    return " " + after(key + ": \"", 36) + "\"";
  }
  const std::size_t begin = prompt.find('[');
  const ordered_json list = ordered_json::parse(prompt.substr(begin, prompt.find(']') + 1 - begin));
  auto numbers = list.get<std::vector<int>>();
  std::sort(numbers.begin(), numbers.end());
  const auto asked = [&](const char* what) {
    return prompt.find(cat("The ", what, " number")) != std::string::npos;
  };
  if (asked("median")) {
    const std::size_t half = numbers.size() / 2;
    const int sum = numbers[half] + numbers[numbers.size() % 2 == 0 ? half - 1 : half];
    return cat(" ", sum / 2, sum % 2 == 0 ? "" : ".5");
  }
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const std::size_t n = numbers.size();
  if (asked("largest")) return cat(" ", numbers[n - 1]);
  if (asked("second largest")) return cat(" ", numbers[n - 2]);
  if (asked("third largest")) return cat(" ", numbers[n - 3]);
  if (asked("smallest")) return cat(" ", numbers[0]);
  return cat(" ", numbers[asked("second smallest") ? 1 : 2]);
}

TEST(InfiniteGenerator, PerfectReaderAnswersEverything) {
  ReadingModel model(roomy(), answer_by_reading);
  const PromptFrame frame(model, {"off"});
  TokenCounter counter(model);
  InfiniteOptions options;
  options.samples = 14;
  const SampleSuite suite = make_infinitebench(frame, counter, options, {3000, 5000});
  ASSERT_EQ(suite.sets.size(), 8u);
  const ResultTable results = run_in_memory(model, {method(model, "none")}, suite).table;
  EXPECT_EQ(results.metric, "official");
  EXPECT_EQ(results.tables.at(1).metric, "lenient");
  for (const ResultRow& s : results.rows) EXPECT_EQ(s.estimate.value, 1) << s.task << s.metric;
  for (const std::string& prompt : model.prompts) EXPECT_GE(prompt.size(), 2700u);
  EXPECT_ERROR(make_infinitebench(frame, counter, options, {100}), usage, "takes ");
  options.tasks = {"code_debug"};
  EXPECT_ERROR(make_infinitebench(frame, counter, options, {3000}), usage,
               "without --data there is no task 'code_debug'");
}

}  // namespace
}  // namespace mrrope::eval
