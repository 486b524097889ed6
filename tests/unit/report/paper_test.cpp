// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"
#include "support/test.h"

namespace mrrope::report {
namespace {

TEST(Paper, HasEveryNumberOfItsTables) {
  EXPECT_EQ(paper_table("nothing"), nullptr);
  std::size_t numbers = 0;
  for (const auto& table : paper().at("tables")) {
    for (const auto& row : table.at("rows")) {
      EXPECT_EQ(row.at("values").size(), table.at("columns").size());
      numbers += row.at("values").size();
    }
  }
  // Perplexity, RULER, InfiniteBench, LongBench-v2 with the two readings of its first half.
  EXPECT_EQ(numbers, 60u + 20u + 35u + 24u + 12u);
}

// Rows of runs in all tables of the paper, as "method|from|...|differs in".
std::string own_rows(const RunRecord& record) {
  std::string text;
  for (const DataTable& table : compared_with_paper({record})) {
    for (const auto& row : table.rows) {
      if (row[1] == "paper") continue;
      for (const std::string& cell : row) text += cell + "|";
      text += "\n";
    }
  }
  return text;
}

struct Row {
  const char* task;
  const char* metric;
  std::int64_t length;
  double value;
  std::size_t n;
};

// A run of float32 on ten random documents, and of InfiniteBench with the paper's limits.
RunRecord record_with(const std::string& model, std::int64_t window, double scale,
                      const std::vector<Row>& rows) {
  RunRecord record;
  record.name = "mine";
  record.model = model;
  record.window = window;
  record.run = {
      {"precision", {{"weights", "f32"}, {"keys", "f32"}, {"values", "f32"}}},
      {"settings",
       {{"select", "random"},
        {"min_tokens", record.window == 8192 && rows[0].length > 100000 ? 100000 : 131072},
        {"max_tokens", 131072},
        {"longer", "drop"},
        {"prompts_sha256", "12ab"}}}};
  for (const Row& r : rows) {
    record.table.rows.push_back(
        {r.task, "pro", r.length, std::nullopt, r.metric, {r.value, 0.01, r.n}});
  }
  record.table.methods = {{"pro", "", scale}};
  return record;
}

const std::string kLlama3Name = "Meta-Llama-3-8B-Instruct";
const std::vector<Row> kPerplexity = {{"ppl", "perplexity", 8192, 3.5, 10},
                                      {"ppl", "perplexity", 16384, 3.25, 10}};

TEST(Paper, NamesEveryDifferenceThatARunRecords) {
  const std::string cells = "pro|yours (mine)|3.5 +- 0.01|3.25 +- 0.01||||";
  const auto rows_of = [&](const std::string& model, std::int64_t window, double scale) {
    return own_rows(record_with(model, window, scale, kPerplexity));
  };
  EXPECT_EQ(rows_of(kLlama3Name, 8192, 16), cells + "nothing known|\n");
  EXPECT_EQ(rows_of(kLlama3Name, 8192, 32), cells + "scale 32 (paper: 16)|\n");
  EXPECT_EQ(rows_of(kLlama3Name, 16384, 16), cells + "window 16k (paper: 8k)|\n");
  EXPECT_EQ(rows_of("Meta-Llama-3-8B", 8192, 16),
            cells + "model Meta-Llama-3-8B (paper: LLaMA3-8B-Instruct)|\n");
  RunRecord record = record_with(kLlama3Name, 8192, 16, kPerplexity);
  record.run["precision"] = {{"weights", "q8_0"}, {"keys", "f32"}};
  record.run["settings"] = ordered_json::object();
  EXPECT_EQ(
      own_rows(record),
      cells +
          "weights q8_0 (paper: f32), values not recorded (paper: f32), selection of documents "
          "first (paper: random), least tokens of a document 0 (paper: 131072)|\n");
  // Lengths with other numbers of documents get a line of their own.
  EXPECT_EQ(own_rows(record_with(kLlama3Name, 8192, 16,
                                 {kPerplexity[0], {"ppl", "perplexity", 16384, 3.25, 7}})),
            "pro|yours (mine)|3.5 +- 0.01|||||nothing known|\n"
            "pro|yours (mine)||3.25 +- 0.01||||7 samples (paper: 10)|\n");
  // Other lengths have no place, and other methods are not Pro.
  EXPECT_EQ(own_rows(record_with(kLlama3Name, 8192, 16, {{"ppl", "perplexity", 4096, 3.5, 10}})),
            "");
  RunRecord elastic = record_with(kLlama3Name, 8192, 16, kPerplexity);
  for (eval::ResultRow& row : elastic.table.rows) row.method = "elastic:pro";
  EXPECT_EQ(own_rows(elastic), "");
}

TEST(Paper, ParametersMustBeThePapersToo) {
  RunRecord record = record_with(kLlama3Name, 8192, 16, {kPerplexity[0]});
  Extension e{.method = "pro", .scale = 16};
  const Geometry g{.rotary_dim = 128, .base = 500000, .train_length = 8192};
  record.methods = {{{"pro", ""}, make_plan(g, e)}};
  EXPECT_TRUE(contains(own_rows(record), "nothing known"));
  e.parameters.high = 30;
  record.methods = {{{"pro", ""}, make_plan(g, e)}};
  EXPECT_TRUE(contains(own_rows(record), "different parameters of pro (paper: its defaults)"));
  Geometry other = g;
  other.base = 1e6;
  e.parameters.high.reset();
  record.methods = {{{"pro", ""}, make_plan(other, e)}};
  EXPECT_TRUE(contains(own_rows(record), "base 1e+06 (paper: 5e+05)"));
}

TEST(Paper, ComparesMeansOfTheSameTasks) {
  std::vector<Row> rows;
  std::vector<std::string> names;
  for (const auto& task : paper_table("infinitebench")->at("tasks"))
    names.push_back("infinitebench/" + task.get<std::string>());
  for (const std::string& name : names)
    rows.push_back({name.c_str(), "official", 131072, 0.25, 100});
  rows.push_back({"infinitebench", "official", 131072, 0.25, 600});
  rows.push_back({"infinitebench/passkey", "lenient", 131072, 0.75, 100});
  // No file of prompts is known to be the official one.
  const std::string prompts = "prompts (SHA-256) 12ab (paper: the official ones)";
  EXPECT_EQ(own_rows(record_with(kLlama3Name, 8192, 16, rows)),
            "pro|yours (mine)|25 +- 1|25 +- 1|25 +- 1|25 +- 1|25 +- 1|25 +- 1|25 +- 1|" + prompts +
                "|\n");
  rows.erase(rows.begin() + 4);  // math_find
  rows[5].n = 500;
  EXPECT_EQ(own_rows(record_with(kLlama3Name, 8192, 16, rows)),
            "pro|yours (mine)|25 +- 1|25 +- 1|25 +- 1|25 +- 1||25 +- 1||" + prompts +
                "|\npro|yours (mine)|||||||25 +- 1|" + prompts +
                ", mean of 5 tasks (paper: 6), 500 samples (paper: 600)|\n");
  RunRecord limits = record_with(kLlama3Name, 8192, 16, {rows[1]});
  limits.run["settings"]["min_tokens_of"] = {{"math_find", 80000}};
  EXPECT_TRUE(contains(own_rows(limits), "least tokens of math_find 80000 (paper: 100000)"));
  // The paper does not say how many samples of RULER it took.
  EXPECT_EQ(
      own_rows(record_with(kLlama3Name, 8192, 16, {{"ruler", "string_match", 8192, 0.75, 130}})),
      "pro|yours (mine)|75 +- 1|||||samples from not recorded (paper: RULER's scripts), mean of "
      "0 tasks (paper: 13)|\n");
}

// The first half of the table is read in two ways, each with its model and length.
TEST(Paper, LongBenchHasTwoReadings) {
  const std::string prompt = "prompt (SHA-256) 12ab (paper: the official one)";
  EXPECT_EQ(own_rows(record_with(kLlama3Name, 8192, 16,
                                 {{"longbench-v2/LD", "accuracy", 131072, 0.25, 39}})),
            "pro|yours (mine)||25 +- 1|||||" + prompt + "|\n");
  EXPECT_EQ(own_rows(record_with("Llama-2-7b-chat-hf", 4096, 16,
                                 {{"longbench-v2/SD", "accuracy", 65536, 0.25, 40}})),
            "pro|yours (mine)|25 +- 1||||||" + prompt + "|\n");
  EXPECT_EQ(own_rows(record_with("Llama-2-7b-chat-hf", 4096, 32,
                                 {{"longbench-v2/SD", "accuracy", 131072, 0.25, 40}})),
            "pro|yours (mine)|25 +- 1||||||scale 32 (paper: 16), " + prompt +
                ", length 128k (paper: 64k)|\n");
}

}  // namespace
}  // namespace mrrope::report
