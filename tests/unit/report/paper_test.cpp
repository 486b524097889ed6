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

// A run of float32 on ten random documents, and of InfiniteBench with the paper's limits, as a
// transcript has it: rows of task, metric, length, value and n, and what else is different.
RunRecord record_from(const json& given) {
  RunRecord record;
  record.name = "mine";
  record.model = given.value("model", "Meta-Llama-3-8B-Instruct");
  record.window = given.value("window", 8192);
  const json& rows = given["rows"];
  const bool limited = record.window == 8192 && rows[0][2] > 100000;
  record.run = {{"precision", {{"weights", "f32"}, {"keys", "f32"}, {"values", "f32"}}},
                {"settings",
                 {{"select", "random"},
                  {"min_tokens", limited ? 100000 : 131072},
                  {"max_tokens", 131072},
                  {"longer", "drop"},
                  {"prompts_sha256", "12ab"}}}};
  for (const char* key : {"precision", "settings"}) {
    if (given.contains(key)) record.run[key] = given[key];
  }
  record.run["settings"].update(given.value("more", json::object()));
  const std::string method = given.value("method", "pro");
  for (const json& r : rows) {
    record.table.rows.push_back({r[0],
                                 method,
                                 r[2],
                                 std::nullopt,
                                 r[1],
                                 {r[3].get<double>(), 0.01, r[4].get<std::size_t>()}});
  }
  record.table.methods = {{"pro", "", given.value("scale", 16.0)}};
  if (given.contains("plan")) {
    Extension e{.method = "pro", .scale = 16};
    if (given["plan"].contains("high")) e.parameters.high = given["plan"]["high"].get<double>();
    const Geometry g{
        .rotary_dim = 128, .base = given["plan"].value("base", 5e5), .train_length = 8192};
    record.methods = {{{"pro", ""}, make_plan(g, e)}};
  }
  return record;
}

TEST(Paper, NamesEveryDifferenceThatARunRecords) {
  test::expect_functions("paper", {{"rows", [](auto& a) {
                                      std::string said = own_rows(record_from(json::parse(a[0])));
                                      if (!said.empty())
                                        said.pop_back();  // the end of its last line
                                      return said;
                                    }}});
}

}  // namespace
}  // namespace mrrope::report
