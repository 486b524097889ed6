// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "eval/results/result_table.h"
#include "support/expect_error.h"

namespace mrrope::eval {
namespace {

using nlohmann::ordered_json;

ordered_json row(const std::string& task, const std::string& method, std::int64_t length,
                 const std::string& metric, const ordered_json& value, const ordered_json& error,
                 int n) {
  return {{"task", task},   {"method", method}, {"plan", "sha256:1"},
          {"scale", 4},     {"length", length}, {"metric", metric},
          {"value", value}, {"stderr", error},  {"n", n}};
}

ordered_json some_results() {
  ordered_json deep = row("needle", "pro", 8192, "contains", 0.25, 0.125, 4);
  deep["depth"] = 33.3;
  return {{"results",
           {row("ppl", "pro", 1024, "perplexity", 5.5, 0.25, 3),
            row("ppl", "pro", 1024, "kl_divergence", 0.5, nullptr, 1),
            row("ppl", "pro", 8192, "perplexity", nullptr, nullptr, 0),
            row("ruler/niah_single_1", "a \"b\", c.json", 4096, "score", 1, 0, 5), deep}},
          {"comparisons", ordered_json::array()}};
}

ordered_json some_run() {
  return {{"mrrope", "0.1.0"},
          {"model_digest", "sha256:2"},
          {"seed", 7},
          {"engine", "scripted"},
          {"model", {{"name", "A Model/v1"}, {"architecture", "llama"}, {"train_length", 1024}}},
          {"settings", {{"batch", 2048}}},
          {"measured", {{"started", "1970-01-02T00:00:01Z"}, {"seconds", 12.5}}}};
}

TEST(ResultFormats, Csv) {
  EXPECT_EQ(results_csv(table_from_json(some_results())),
            "task,method,plan,scale,length,depth,metric,value,stderr,n\n"
            "ppl,pro,sha256:1,4.0,1024,,perplexity,5.5,0.25,3\n"
            "ppl,pro,sha256:1,4.0,1024,,kl_divergence,0.5,,1\n"
            "ppl,pro,sha256:1,4.0,8192,,perplexity,,,0\n"
            "ruler/niah_single_1,\"a \"\"b\"\", c.json\",sha256:1,4.0,4096,,score,1.0,0.0,5\n"
            "needle,pro,sha256:1,4.0,8192,33.3,contains,0.25,0.125,4\n");
}

TEST(ResultFormats, LmEval) {
  const ordered_json j = lm_eval_results(some_run(), table_from_json(some_results()));
  const ordered_json& tasks = j.at("results");
  ASSERT_EQ(tasks.size(), 4u);
  const ordered_json& ppl = tasks.at("ppl/pro/1024");
  EXPECT_EQ(ppl.at("perplexity,none"), 5.5);
  EXPECT_EQ(ppl.at("perplexity_stderr,none"), 0.25);
  EXPECT_EQ(ppl.at("kl_divergence,none"), 0.5);
  EXPECT_EQ(ppl.at("kl_divergence_stderr,none"), "N/A");
  EXPECT_EQ(ppl.at("sample_len"), 3);
  EXPECT_EQ(ppl.at("sample_count").at("kl_divergence,none"), 1);
  EXPECT_TRUE(tasks.at("ppl/pro/8192").at("perplexity,none").is_null());
  EXPECT_EQ(tasks.at("needle/pro/8192/depth_33.3").at("contains,none"), 0.25);
  EXPECT_EQ(tasks.at("ruler/niah_single_1/a \"b\", c.json/4096").at("score,none"), 1);

  EXPECT_EQ(j.at("group_subtasks").at("ppl/pro"), (ordered_json{"ppl/pro/1024", "ppl/pro/8192"}));
  EXPECT_EQ(j.at("n-samples").at("ppl/pro/8192"),
            (ordered_json{{"original", 3}, {"effective", 0}}));
  EXPECT_EQ(j.at("higher_is_better").at("ppl/pro/1024").at("perplexity"), false);
  EXPECT_EQ(j.at("higher_is_better").at("needle/pro/8192/depth_33.3").at("contains"), true);
  for (const char* part : {"versions", "n-shot", "configs", "n-samples", "higher_is_better"}) {
    for (const auto& [name, content] : tasks.items())
      EXPECT_TRUE(j.at(part).contains(name)) << part;
    EXPECT_EQ(j.at(part).size(), tasks.size()) << part;
  }
  EXPECT_EQ(j.at("configs").at("needle/pro/8192/depth_33.3").at("metadata").at("depth"), 33.3);
  EXPECT_EQ(j.at("config").at("model"), "mrrope");
  EXPECT_EQ(j.at("config").at("model_args").at("train_length"), 1024);
  EXPECT_EQ(j.at("config").at("random_seed"), 7);
  EXPECT_EQ(j.at("model_name"), "A Model/v1");
  EXPECT_EQ(j.at("model_name_sanitized"), "A_Model_v1");
  EXPECT_EQ(j.at("date"), 86401);
  EXPECT_EQ(j.at("total_evaluation_time_seconds"), "12.5");
}

TEST(ResultFormats, TheTableIsReadBack) {
  EXPECT_EQ(to_json(table_from_json(some_results())).at("results")[4].dump(),
            R"({"task":"needle","method":"pro","plan":"sha256:1","scale":4.0,"length":8192,)"
            R"("depth":33.3,"metric":"contains","value":0.25,"stderr":0.125,"n":4})");
  EXPECT_ERROR(table_from_json({{"results", 3}}), corrupt, "no list of results");
  EXPECT_ERROR(lm_eval_results(ordered_json::object(), {}), corrupt, "'model'");
}

}  // namespace
}  // namespace mrrope::eval
