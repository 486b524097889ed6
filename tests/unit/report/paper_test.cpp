// SPDX-License-Identifier: Apache-2.0
#include "report/paper/paper.h"

#include <gtest/gtest.h>

namespace mrrope::report {
namespace {

TEST(Paper, NumbersAndMisprints) {
  const auto of = [](const char* id) { return *paper_table(id); };
  EXPECT_EQ(paper_value(of("ppl-llama3"), "pro", 131072), 2.34);
  EXPECT_EQ(paper_value(of("ppl-llama3"), "ntk", 131072), std::nullopt);  // ">10"
  EXPECT_EQ(paper_value(of("ppl-qwen"), "pro", 32768), 2.579);
  EXPECT_EQ(paper_value(of("ppl-qwen"), "pro", 32768, true), 3.579);
  EXPECT_EQ(paper_value(of("infinitebench"), "pro", "kv_retrieval"), 27);
  EXPECT_EQ(paper_value(of("needle-llama3"), "pro", 1), std::nullopt);  // a figure
  EXPECT_EQ(paper_table("nothing"), nullptr);
  std::size_t numbers = 0;
  for (const auto& table : paper().at("tables")) {
    for (const auto& row : table.at("rows")) {
      EXPECT_EQ(row.at("values").size(), table.at("columns").size());
      numbers += row.at("values").size();
    }
  }
  EXPECT_EQ(numbers, 60u + 20u + 35u + 24u);  // perplexity, RULER, InfiniteBench, LongBench-v2
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

RunRecord record_with(const std::string& model, std::int64_t window, double scale,
                      const std::vector<Row>& rows) {
  RunRecord record;
  record.name = "mine";
  record.model = model;
  record.window = window;
  for (const Row& r : rows) {
    record.rows.push_back(
        {r.task, "pro", "", r.metric, scale, r.length, std::nullopt, {r.value, 0.01, r.n}});
  }
  return record;
}

TEST(Paper, ComparesLikeWithLike) {
  const std::string model = "Meta-Llama-3-8B-Instruct";
  const std::vector<Row> ppl = {{"ppl", "perplexity", 8192, 3.5, 10},
                                {"ppl", "perplexity", 16384, 3.25, 10}};
  EXPECT_EQ(own_rows(record_with(model, 8192, 16, ppl)),
            "pro|yours (mine)|3.5 +- 0.01|3.25 +- 0.01||||\n");
  EXPECT_EQ(own_rows(record_with(model, 8192, 32, ppl)),
            "pro|not alike (mine)|3.5 +- 0.01|3.25 +- 0.01||||scale 32 (paper: 16)|\n");
  EXPECT_EQ(own_rows(record_with(model, 16384, 16, ppl)),
            "pro|not alike (mine)|3.5 +- 0.01|3.25 +- 0.01||||window 16k (paper: 8k)|\n");
  // Lengths with other numbers of documents get a line of their own.
  EXPECT_EQ(own_rows(record_with(model, 8192, 16, {ppl[0], {"ppl", "perplexity", 16384, 3.25, 7}})),
            "pro|yours (mine)|3.5 +- 0.01||||||\n"
            "pro|not alike (mine)||3.25 +- 0.01||||7 samples (paper: 10)|\n");
  // Other lengths have no place, and other methods are not Pro.
  EXPECT_EQ(own_rows(record_with(model, 8192, 16, {{"ppl", "perplexity", 4096, 3.5, 10}})), "");
  RunRecord elastic = record_with(model, 8192, 16, ppl);
  for (ResultRow& row : elastic.rows) row.method = "elastic:pro";
  EXPECT_EQ(own_rows(elastic), "");
}

TEST(Paper, ParametersMustBeThePapersToo) {
  RunRecord record =
      record_with("Meta-Llama-3-8B-Instruct", 8192, 16, {{"ppl", "perplexity", 8192, 3.5, 10}});
  Extension e;
  e.method = "pro";
  e.scale = 16;
  const Geometry g{.rotary_dim = 128, .base = 500000, .train_length = 8192};
  record.methods = {{"pro", "", false, make_plan(g, e)}};
  EXPECT_NE(own_rows(record).find("yours"), std::string::npos);
  e.parameters.high = 30;
  record.methods = {{"pro", "", false, make_plan(g, e)}};
  EXPECT_NE(own_rows(record).find("other parameters of pro (paper: its defaults)"),
            std::string::npos);
  Geometry other = g;
  other.base = 1e6;
  e.parameters.high.reset();
  record.methods = {{"pro", "", false, make_plan(other, e)}};
  EXPECT_NE(own_rows(record).find("base 1e+06 (paper: 5e+05)"), std::string::npos)
      << own_rows(record);
}

TEST(Paper, ComparesMeansOfTheSameTasks) {
  std::vector<Row> rows;
  const auto& table = *paper_table("infinitebench");
  std::vector<std::string> names;
  for (const auto& task : table.at("tasks"))
    names.push_back("infinitebench/" + task.get<std::string>());
  for (const std::string& name : names)
    rows.push_back({name.c_str(), "official", 131072, 0.25, 100});
  rows.push_back({"infinitebench", "official", 131072, 0.25, 600});
  rows.push_back({"infinitebench/passkey", "lenient", 131072, 0.75, 100});
  const std::string model = "Meta-Llama-3-8B-Instruct";
  EXPECT_EQ(own_rows(record_with(model, 8192, 16, rows)),
            "pro|yours (mine)|25 +- 1|25 +- 1|25 +- 1|25 +- 1|25 +- 1|25 +- 1|25 +- 1|\n");
  rows.erase(rows.begin() + 4);  // math_find
  rows[5].n = 500;
  EXPECT_EQ(own_rows(record_with(model, 8192, 16, rows)),
            "pro|yours (mine)|25 +- 1|25 +- 1|25 +- 1|25 +- 1||25 +- 1|||\n"
            "pro|not alike (mine)|||||||25 +- 1|mean of 5 tasks (paper: 6), 500 samples (paper: "
            "600)|\n");
  EXPECT_EQ(own_rows(record_with(model, 8192, 16, {{"ruler", "string_match", 8192, 0.75, 6500}})),
            "pro|not alike (mine)|75 +- 1|||||mean of 0 tasks (paper: 13)|\n");
}

// LLaMA2 at 16 times its window is 64K; at 128K the scale is 32, which the paper does not have.
TEST(Paper, LongBenchOfLlama2IsAt64K) {
  EXPECT_EQ(own_rows(record_with("Llama-2-7b-chat-hf", 4096, 16,
                                 {{"longbench-v2/SD", "accuracy", 65536, 0.25, 40}})),
            "pro|yours (mine)|25 +- 1||||||\n");
  EXPECT_EQ(own_rows(record_with("Llama-2-7b-chat-hf", 4096, 32,
                                 {{"longbench-v2/SD", "accuracy", 131072, 0.25, 40}})),
            "pro|not alike (mine)|25 +- 1||||||scale 32 (paper: 16), length 128k (paper: 64k)|\n");
}

}  // namespace
}  // namespace mrrope::report
