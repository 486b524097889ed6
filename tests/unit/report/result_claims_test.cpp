// SPDX-License-Identifier: Apache-2.0
// Claims that results decide: each is tried with results that make it hold, that make it fail, and
// that decide nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "report/paper/claims.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace mrrope::report {
namespace {

using nlohmann::ordered_json;

constexpr double kSure = 1e-4;
constexpr double kUnsure = 10;

// A score or a perplexity by method and column index, of `columns` many.
using Values = std::function<double(const std::string& method, std::size_t i, std::size_t columns)>;

RunRecord record_of_model(const std::string& model) {
  RunRecord record;
  record.name = "mine";
  if (model == "LLaMA3-8B-Instruct")
    record.model = "Meta-Llama-3-8B-Instruct", record.window = 8192;
  if (model == "Qwen2.5-3B-Instruct") record.model = "Qwen2.5 3B Instruct", record.window = 32768;
  if (model == "LLaMA2-7B-chat") record.model = "Llama-2-7b-chat-hf", record.window = 4096;
  return record;
}

void add_row(RunRecord& record, const ordered_json& table, const std::string& task,
             const std::string& method, std::int64_t length, const eval::Estimate& e) {
  record.rows.push_back({task, method, "", table.at("result").get<std::string>(),
                         table.at("scale").get<double>(), length, std::nullopt, e});
}

// A run in the setting of a table.
RunRecord run_of(const std::string& id, const Values& values, double error = kSure) {
  const ordered_json& table = *paper_table(id);
  RunRecord record = record_of_model(table.at("model").get<std::string>());
  const std::size_t columns = table.at("columns").size();
  for (const char* method : {"ntk", "yarn", "uni", "pro"}) {
    for (std::size_t i = 0; i < columns; ++i) {
      const ordered_json& column = table.at("columns")[i];
      const std::int64_t length =
          column.is_number() ? column.get<std::int64_t>() : table.at("length").get<std::int64_t>();
      const eval::Estimate e(values(method, i, columns), error, 100);
      const std::string task = paper_task(table, column);
      add_row(record, table, task, method, length, e);
      if (!column.is_number() || !table.contains("tasks")) continue;
      for (const ordered_json& part : table.at("tasks")) {
        add_row(record, table, task + "/" + part.get<std::string>(), method, length, e);
      }
    }
  }
  return record;
}

RunRecord needle_run(double pro, double yarn, double noise = 0) {
  const ordered_json& figure = *paper_table("needle-llama3");
  RunRecord record = record_of_model("LLaMA3-8B-Instruct");
  int sign = 1;
  for (std::int64_t length = 8192; length <= 131072; length += 8192) {
    for (int depth = 0; depth <= 100; depth += 10) {
      sign = -sign;
      add_row(record, figure, "needle", "pro", length, {pro + sign * noise, 0, 5});
      record.rows.back().depth = depth;
      add_row(record, figure, "needle", "yarn", length, {yarn, 0, 5});
      record.rows.back().depth = depth;
    }
  }
  return record;
}

// off: perplexity away from the model's own boundaries; errors over three documents.
RunRecord sweep_run(const std::string& model, bool low, double own, double off, double yarn,
                    double noise = 0) {
  RunRecord record = record_of_model(model);
  record.sweep.emplace();
  record.sweep->length = 131072;
  const bool llama = model == "LLaMA3-8B-Instruct";
  const Boundaries usual = llama ? Boundaries{18, 35} : Boundaries{23, 40};
  for (int d = -1; d <= 4; ++d) {
    const Boundaries b =
        low ? Boundaries{usual.low + d, usual.high} : Boundaries{usual.low, usual.high + d};
    for (const char* method : {"pro", "yarn"}) {
      RecordedSweep::Point p;
      p.method = method;
      p.low = b.low;
      p.high = b.high;
      const double value = p.method == "yarn" ? yarn : d == 0 ? own : off;
      for (int i = 0; i < 3; ++i) {
        p.loss.push_back(std::log(value) + i +
                         (p.method == "yarn" ? -1
                          : d == 0           ? 0
                                             : 1) *
                             (i - 1) * noise);
      }
      p.perplexity = {value, 1, 3};  // unpaired these errors would decide nothing
      record.sweep->points.push_back(p);
    }
  }
  return record;
}

RunRecord attention_run(double pro_falls, double pro_ks) {
  RunRecord record;
  record.name = "attention.json";
  record.model = "Any Model";
  record.attention.emplace();
  record.attention->lines = {{"yarn", 1000, 0.3}, {"pro", pro_falls, pro_ks}};
  record.attention->past = 1000;
  return record;
}

enum class Kind { good, bad, unsure };

// Runs that make one claim hold or fail, or that measure it without deciding it.
std::vector<RunRecord> runs_for(const std::string& id, Kind kind) {
  const bool good = kind == Kind::good;
  const double error = kind == Kind::unsure ? kUnsure : kSure;
  const auto starts = [&](const char* text) { return id.rfind(text, 0) == 0; };
  const auto of = [&](const std::string& method, double pro, double other) {
    return method == "pro" ? pro : other;
  };
  // The last column apart from the others.
  const auto last = [](std::size_t i, std::size_t n, double at_last, double before) {
    return i + 1 == n ? at_last : before;
  };
  const Values lower = [&](const auto& m, std::size_t, std::size_t) {
    return good ? of(m, 2, 3) : of(m, 3, 2);
  };
  const Values scores = [&](const auto& m, std::size_t, std::size_t) {
    return good ? of(m, 0.9, 0.2) : of(m, 0.1, 0.2);
  };
  if (starts("pro-below-yarn-") || starts("lowest-")) {
    return {run_of("ppl-" + id.substr(id.rfind('-') + 1), lower, error)};
  }
  if (id == "yarn-uni-last") {
    const Values v = [&](const auto& m, std::size_t i, std::size_t n) {
      return m == "yarn" ? (good ? last(i, n, 2, 4) : last(i, n, 4, 2)) : 3.0;
    };
    return {run_of("ppl-llama3", v, error), run_of("ppl-qwen", v, error),
            run_of("ppl-llama2", v, error)};
  }
  if (starts("ruler-stable") || id == "window-doubled") {
    const Values v = [&](const auto& m, std::size_t i, std::size_t n) {
      return (m == "pro") == good ? 0.9 : last(i, n, 0.5, 0.9);
    };
    std::vector<RunRecord> runs = {run_of("ruler-llama3", v, error)};
    if (id == "ruler-stable") runs.push_back(run_of("ruler-qwen", v, error));
    return runs;
  }
  if (starts("more-than-double-") || starts("beats-") || id == "near-gpt4") {
    return {run_of("infinitebench", scores, error)};
  }
  if (id == "longbench-never-below") {
    if (kind == Kind::unsure) return {};  // not below within the errors is what it says
    return {run_of("longbench-llama", scores), run_of("longbench-qwen", scores)};
  }
  if (starts("needle-") || starts("recall-")) {
    if (kind == Kind::unsure) return {needle_run(id == "needle-deep" ? 0.95 : 0.85, 0.85, 0.15)};
    return {good ? needle_run(0.99, 0.5) : needle_run(0.4, 0.5)};
  }
  const bool low = starts("sensitivity-low");
  if (starts("sensitivity-")) {
    const bool against_yarn = id.find("yarn") != std::string::npos;
    const double off = against_yarn || good ? 3 : 4;
    const double yarn = good ? 3.5 : 2;
    return {kind == Kind::unsure ? sweep_run("LLaMA3-8B-Instruct", low, 3, 3, 3, 1)
                                 : sweep_run("LLaMA3-8B-Instruct", low, 3, off, yarn)};
  }
  if (id == "qwen-boundaries") {
    if (kind == Kind::unsure) return {sweep_run("Qwen2.5-3B-Instruct", true, 3, 2.9, 3, 1)};
    return {sweep_run("Qwen2.5-3B-Instruct", true, 3, good ? 3.1 : 2.9, 3)};
  }
  if (id == "attention-range") {
    return {attention_run(kind == Kind::unsure ? 1000 : good ? 2000 : 500, 0.1)};
  }
  if (id == "attention-trained") {
    return {attention_run(2000, kind == Kind::unsure ? 0.301 : good ? 0.2 : 0.4)};
  }
  ADD_FAILURE() << "no results for " << id;
  return {};
}

Claim claim_with(const std::string& id, const std::vector<RunRecord>& runs) {
  for (const Claim& c : result_claims(runs)) {
    if (c.id == id) return c;
  }
  ADD_FAILURE() << "no claim " << id;
  return {};
}

TEST(ResultClaims, ResultsMakeEachHoldOrFail) {
  std::size_t tried = 0;
  for (const Claim& before : result_claims({})) {
    const Claim good = claim_with(before.id, runs_for(before.id, Kind::good));
    EXPECT_EQ(to_string(good.state), std::string("holds")) << good.id << "\n" << good.measured;
    EXPECT_EQ(good.measured.rfind("mine: holds: ", 0) == 0 ||
                  good.measured.rfind("attention.json: holds: ", 0) == 0,
              true)
        << good.measured;
    const Claim bad = claim_with(before.id, runs_for(before.id, Kind::bad));
    EXPECT_EQ(to_string(bad.state), std::string("does not hold")) << bad.id << "\n" << bad.measured;
    const std::vector<RunRecord> unsure = runs_for(before.id, Kind::unsure);
    if (!unsure.empty()) {
      const Claim open = claim_with(before.id, unsure);
      EXPECT_EQ(to_string(open.state), std::string("measured")) << open.id << "\n" << open.measured;
    }
    // Nothing is lost of what the paper says itself.
    EXPECT_EQ(good.found, before.found);
    ++tried;
  }
  EXPECT_GE(tried, 30u);
}

TEST(ResultClaims, PartsThatWereNotMeasuredAreNamed) {
  RunRecord run = run_of(
      "ppl-llama3", [](const auto& m, std::size_t, std::size_t) { return m == "pro" ? 2.0 : 3.0; });
  std::erase_if(run.rows, [](const ResultRow& r) { return r.length > 32768; });
  const Claim c = claim_with("pro-below-yarn-llama3", {run});
  EXPECT_EQ(c.state, ClaimState::in_part);
  EXPECT_NE(c.measured.find("not measured: 64k, 128k"), std::string::npos) << c.measured;
  // Another run has them.
  RunRecord rest = run_of(
      "ppl-llama3", [](const auto& m, std::size_t, std::size_t) { return m == "pro" ? 2.0 : 3.0; });
  std::erase_if(rest.rows, [](const ResultRow& r) { return r.length <= 32768; });
  EXPECT_EQ(claim_with("pro-below-yarn-llama3", {run, rest}).state, ClaimState::holds);
}

// Documents differ more than methods do: only their pairs tell methods apart.
TEST(ResultClaims, PerplexitiesArePairedOverDocuments) {
  RunRecord run = run_of(
      "ppl-llama3", [](const auto&, std::size_t, std::size_t) { return 3.0; }, kUnsure);
  eval::PerplexityResults results;
  results.lengths = {8192, 16384, 32768, 65536, 131072};
  for (const char* method : {"yarn", "pro"}) {
    eval::PerplexityRow row;
    row.method = method;
    for (std::size_t l = 0; l < results.lengths.size(); ++l) {
      eval::PerplexityCell cell;
      for (int d = 0; d < 4; ++d) {
        cell.loss.push_back(d + 0.001 * d * double(l) -
                            (row.method == "pro" ? 0.01 + 0.001 * d : 0));
      }
      row.cells.push_back(cell);
    }
    results.rows.push_back(row);
  }
  run.perplexity = results;
  const Claim c = claim_with("pro-below-yarn-llama3", {run});
  EXPECT_EQ(c.state, ClaimState::holds) << c.measured;
  EXPECT_NE(c.measured.find("-1.15 +- 0.065 %"), std::string::npos) << c.measured;
}

TEST(ResultClaims, OtherSettingsAreShownAndDecideNothing) {
  const Values better = [](const auto& m, std::size_t, std::size_t) {
    return m == "pro" ? 2.0 : 3.0;
  };
  RunRecord run = run_of("ppl-llama2", better);
  run.model = "Some Model";
  Claim c = claim_with("pro-below-yarn-llama3", {run});
  EXPECT_TRUE(c.measured.empty());
  EXPECT_EQ(c.state, ClaimState::holds);  // by the paper's own numbers
  EXPECT_EQ(
      c.elsewhere.rfind("mine (model Some Model (paper: LLaMA3-8B-Instruct)): holds: 4k (2", 0), 0u)
      << c.elsewhere;
  EXPECT_TRUE(claim_with("pro-below-yarn-qwen", {run}).elsewhere.empty());  // said once

  RunRecord scaled = run_of("ppl-llama3", better);
  for (ResultRow& row : scaled.rows) row.scale = 32;
  c = claim_with("pro-below-yarn-llama3", {scaled});
  EXPECT_TRUE(c.measured.empty());
  EXPECT_NE(c.elsewhere.find("scale 32 (paper: 16)"), std::string::npos) << c.elsewhere;
  EXPECT_TRUE(claim_with("pro-below-yarn-qwen", {scaled}).elsewhere.empty());

  // Another model at Qwen's scale is shown there, not under the first claim of that rule.
  RunRecord near = run_of("ppl-qwen", better);
  near.model = "Some Model";
  EXPECT_TRUE(claim_with("pro-below-yarn-llama3", {near}).elsewhere.empty());
  EXPECT_EQ(claim_with("pro-below-yarn-qwen", {near})
                .elsewhere.rfind("mine (model Some Model (paper: Qwen2.5-3B-Instruct)): holds", 0),
            0u);

  // The mean of fewer tasks is not the mean of all.
  RunRecord few = run_of("ruler-llama3", better);
  std::erase_if(few.rows, [](const ResultRow& r) { return r.task == "ruler/vt"; });
  EXPECT_TRUE(claim_with("ruler-stable-llama3", {few}).measured.empty());

  RunRecord form = needle_run(0.99, 0.5);
  form.needle.emplace();
  form.needle->form = "number";
  EXPECT_EQ(claim_with("recall-85", {form}).state, ClaimState::needs_model);
  form.needle->form = "kamradt";
  EXPECT_EQ(claim_with("recall-85", {form}).state, ClaimState::holds);
}

TEST(ResultClaims, OneNeedlePerCellIsEnough) {
  RunRecord run = needle_run(0.9, 0.5);
  for (ResultRow& row : run.rows) {
    row.estimate.n = 1;
    row.estimate.error = std::nan("");
  }
  EXPECT_EQ(claim_with("needle-short", {run}).state, ClaimState::holds);
}

TEST(ResultClaims, AttentionComesFromAFile) {
  const test::TempFolder temp;
  const auto write = [&](const std::string& text) { return temp.write("a.json", text); };
  const RunRecord record =
      read_attention(write(R"({"plans": [{"method": "yarn", "falls_until": 10, "ks": 0.5},
                          {"method": "pro", "falls_until": 20, "ks": 0.1}],
                "model": "M", "pairs": 50, "window": 4, "distances": [1, 4, 9, 20]})"));
  EXPECT_EQ(record.attention->past, 100u);
  EXPECT_EQ(claim_with("attention-range", {record}).measured, "a.json: holds: M (20 against 10)");
  EXPECT_EQ(claim_with("attention-trained", {record}).state, ClaimState::holds);
  for (const char* text : {"[]", "{}", R"({"plans": 1, "distances": [], "window": 4})",
                           R"({"plans": [3], "distances": [], "window": 4})",
                           R"({"plans": [{}], "distances": [], "window": 4})"}) {
    EXPECT_ERROR(read_attention(write(text)), corrupt, "");
  }
}

}  // namespace
}  // namespace mrrope::report
