// SPDX-License-Identifier: Apache-2.0
#include "eval/results/result_table.h"
#include "support/test.h"

namespace mrrope::eval {
namespace {

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

TEST(ResultFormats, AreThoseOfTheTranscript) {
  const ResultTable table = table_from_json(some_results());
  test::expect_transcript("result_formats", [&](const std::string& format) {
    if (format == "csv") return results_csv(table);
    return (format == "json" ? to_json(table) : lm_eval_results(some_run(), table)).dump(1);
  });
}

TEST(ResultFormats, NeedARunAndItsResults) {
  EXPECT_ERROR(table_from_json({{"results", 3}}), corrupt, "no list of results");
  EXPECT_ERROR(lm_eval_results(ordered_json::object(), {}), corrupt, "'model'");
}

}  // namespace
}  // namespace mrrope::eval
