// SPDX-License-Identifier: Apache-2.0
// Claims that computing decides. Each is tried with plans or tables that turn its verdict around.
#include "report/paper/claims.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "mrrope/theory.h"

namespace mrrope::report {
namespace {

using nlohmann::ordered_json;

const Geometry kLlama2{.rotary_dim = 128, .base = 10000, .train_length = 4096};

ClaimState state_of(const std::vector<Claim>& claims, const std::string& id) {
  for (const Claim& c : claims) {
    if (c.id == id) return c.state;
  }
  ADD_FAILURE() << "no claim " << id;
  return ClaimState::needs_model;
}

TEST(Claims, SomeHoldAndSomeDoNot) {
  std::map<std::string, ClaimState> state;
  for (const Claim& c : claims_of({})) {
    EXPECT_TRUE(state.emplace(c.id, c.state).second) << c.id;
    EXPECT_FALSE(c.says.empty() || c.found.empty() || c.place.empty() || c.rule.empty()) << c.id;
    EXPECT_TRUE(c.measured.empty() && c.elsewhere.empty()) << c.id;
    EXPECT_FALSE(c.state == ClaimState::needs_model && c.command.empty()) << c.id;
  }
  const std::map<ClaimState, std::vector<const char*>> expected = {
      {ClaimState::holds,
       {"boundaries",
        "ntk-equation",
        "uni-pro-equations",
        "yarn-equation",
        "pi-no-radix",
        "range",
        "temperature",
        "estimate-linear",
        "yarn-regressive",
        "bound-raised",
        "infinitebench-average",
        "pro-below-yarn-llama3",
        "pro-below-yarn-qwen",
        "lowest-llama3",
        "lowest-qwen",
        "yarn-uni-last",
        "ruler-stable-llama3",
        "window-doubled",
        "more-than-double-kv",
        "more-than-double-dialogue",
        "beats-yi",
        "beats-kimi",
        "near-gpt4",
        "longbench-never-below"}},
      {ClaimState::in_part,
       {"yarn-regressive-any-scale", "oscillation", "pro-below-yarn-llama2", "ruler-stable"}},
      {ClaimState::fails,
       {"yarn-linear", "yarn-regressive-index", "one-to-one", "bound-yarn", "bound-pro",
        "bound-ratio", "more-than-double-passkey", "more-than-double-number"}},
      {ClaimState::misprint,
       {"incomplete-pairs", "letters", "estimate-sign", "qwen-32k", "longbench-model"}},
      {ClaimState::needs_model,
       {"recall-85", "recall-85-120k", "needle-96k", "needle-short", "needle-deep", "needle-middle",
        "attention-range", "attention-trained", "sensitivity-high", "sensitivity-high-yarn",
        "sensitivity-low", "sensitivity-low-yarn", "qwen-boundaries"}}};
  std::size_t listed = 0;
  for (const auto& [wanted, ids] : expected) {
    for (const char* id : ids) {
      ASSERT_TRUE(state.count(id)) << id;
      EXPECT_EQ(to_string(state.at(id)), std::string(to_string(wanted))) << id;
      ++listed;
    }
  }
  EXPECT_EQ(listed, state.size());
  EXPECT_EQ(table_of(claims_of({})).rows.size(), state.size());
}

// Roots of B(m) found before this project had a line of code.
TEST(Claims, BoundMatchesTheOneFoundByHand) {
  for (const Claim& c : claims_of({})) {
    if (c.id != "bound-pro") continue;
    for (const char* part : {"untouched 1707", "PI 27297", "NTK 7920", "YaRN 11671",
                             "rotations 15037", "Uni 10263", "Pro 14239", "27436 at S = 32"}) {
      EXPECT_NE(c.found.find(part), std::string::npos) << part << " in " << c.found;
    }
  }
}

// ---- plans that turn a verdict around

// Some methods replaced by others.
PlanMaker instead(const std::map<std::string, std::string>& names) {
  return [names](const Geometry& g, const std::string& method, double scale) {
    const auto it = names.find(method);
    return usual_plan(g, it == names.end() ? method : it->second, scale);
  };
}

// One method with factors of its own.
PlanMaker with_factors(const std::string& name,
                       double (*factor)(const Geometry& g, std::size_t i)) {
  return [=](const Geometry& g, const std::string& method, double scale) {
    if (method != name) return usual_plan(g, method, scale);
    Extension e;
    e.method = "custom";
    e.scale = scale;
    for (int i = 0; i < pair_count(g); ++i)
      e.parameters.factors.push_back(factor(g, std::size_t(i)));
    return make_plan(g, e);
  };
}

// One method with the untouched plan of another base, whose root is near `root`.
PlanMaker with_root(const std::string& name, std::int64_t root) {
  for (double base = 100; base < 1e8; base *= 1.05) {
    Geometry g = kLlama2;
    g.base = base;
    const auto m = first_negative(usual_plan(g, "none", 1).theta(), 1 << 17);
    if (!m || std::abs(double(*m) / double(root) - 1) > 0.05) continue;
    return [=](const Geometry& given, const std::string& method, double scale) {
      return method == name ? usual_plan(g, "none", 1) : usual_plan(given, method, scale);
    };
  }
  ADD_FAILURE() << "no base has its root near " << root;
  return usual_plan;
}

TEST(Claims, OtherPlansGetOtherVerdicts) {
  using S = ClaimState;
  const auto expect = [](const PlanMaker& plans, const std::map<std::string, S>& states) {
    const std::vector<Claim> claims = theory_claims(plans);
    for (const auto& [id, state] : states) {
      EXPECT_EQ(to_string(state_of(claims, id)), std::string(to_string(state))) << id;
    }
  };
  expect(instead({{"uni", "none"}, {"pro", "none"}, {"yarn", "none"}}),
         {{"range", S::fails}, {"bound-raised", S::fails}, {"temperature", S::fails}});
  expect(instead({{"ntk", "pi"},
                  {"pi", "pro"},
                  {"yarn-rotations", "pro"},
                  {"uni", "pro"},
                  {"pro", "uni"}}),
         {{"ntk-equation", S::fails},
          {"pi-no-radix", S::fails},
          {"yarn-regressive", S::fails},
          {"yarn-equation", S::fails},
          {"uni-pro-equations", S::fails}});
  expect(instead({{"uni", "none"}, {"yarn", "yarn-rotations"}}),
         {{"range", S::in_part}, {"yarn-regressive-index", S::holds}});
  expect(instead({{"yarn", "pro"}, {"yarn-rotations", "pro"}, {"uni", "pro"}}),
         {{"oscillation", S::fails}});
  expect(instead({{"pro", "pi"}, {"yarn", "none"}}), {{"bound-ratio", S::holds}});
  expect(with_root("yarn", 6144), {{"bound-yarn", S::holds}});
  expect(with_root("pro", 28672), {{"bound-pro", S::in_part}});
  expect(with_root("none", 1024), {{"bound-pro", S::in_part}});
  expect([](const Geometry& g, const std::string& method,
            double) { return usual_plan(g, method, method == "none" ? 1 : 4); },
         {{"yarn-regressive-any-scale", S::holds}});
  expect(
      [](Geometry g, const std::string& method, double scale) {
        g.train_length *= 2;
        g.base = 10000;
        return usual_plan(g, method, scale);
      },
      {{"boundaries", S::fails}, {"letters", S::fails}, {"estimate-linear", S::fails}});
  // Without a full turn both forms of the estimate are straight lines.
  expect(with_factors("none", [](const Geometry&, std::size_t) { return 1e9; }),
         {{"estimate-sign", S::holds}});
  // 1 / theta in place of theta.
  expect(with_factors("none", [](const Geometry& g,
                                 std::size_t i) { return std::pow(trained_theta(g)[i], 2); }),
         {{"incomplete-pairs", S::holds}});
  expect(with_factors("yarn-rotations",
                      [](const Geometry& g, std::size_t i) {
                        const double r = rotations_in_window(g)[i];
                        return r >= 32 ? 1.0 : r <= 1 ? 16.0 : 16 - 15 * (r - 1) / 31;
                      }),
         {{"yarn-linear", S::holds}});
}

// ---- tables that turn a verdict around

ordered_json& cell_of(ordered_json& printed, const char* table, const char* method,
                      std::size_t column) {
  for (ordered_json& t : printed["tables"]) {
    if (t["id"] != table) continue;
    for (ordered_json& row : t["rows"]) {
      if (row["method"] == method) return row["values"][column];
    }
  }
  ADD_FAILURE() << table << " " << method;
  return printed;
}

TEST(Claims, OtherTablesGetOtherVerdicts) {
  const auto state = [](const char* id, const ordered_json& printed) {
    return state_of(theory_claims(usual_plan, printed), id);
  };
  ordered_json right = paper();
  cell_of(right, "ppl-qwen", "pro", 2) = 2.579;
  EXPECT_EQ(state("qwen-32k", right), ClaimState::holds);
  ordered_json wrong = paper();
  cell_of(wrong, "ppl-qwen", "yarn", 2) = 2.5;
  EXPECT_EQ(state("qwen-32k", wrong), ClaimState::fails);
  cell_of(wrong, "infinitebench", "pro", 6) = 60;
  EXPECT_EQ(state("infinitebench-average", wrong), ClaimState::in_part);
  for (ordered_json& t : right["tables"]) {
    if (t["id"] == "longbench-llama") t["caption_model"] = "LLaMA2-7B-chat";
  }
  EXPECT_EQ(state("longbench-model", right), ClaimState::holds);
  for (ordered_json& t : wrong["tables"]) {
    if (t["id"] == "longbench-llama") t["window"] = 12345;
  }
  EXPECT_EQ(state("longbench-model", wrong), ClaimState::fails);

  // Sentences about results, by the paper's own numbers.
  cell_of(wrong, "ppl-llama3", "pro", 0) = 4;
  for (const Claim& c : result_claims({}, wrong)) {
    if (c.id != "pro-below-yarn-llama3") continue;
    EXPECT_EQ(c.state, ClaimState::in_part);
    EXPECT_NE(c.found.find("does not hold: 8k (4 against 3.68)"), std::string::npos) << c.found;
  }
}

TEST(Claims, PartsMakeTheState) {
  using O = ClaimPart::Outcome;
  const auto state = [](const std::vector<O>& outcomes) {
    std::vector<ClaimPart> parts;
    for (const O o : outcomes) parts.push_back({"x", o, ""});
    return state_of_parts(parts);
  };
  EXPECT_EQ(state({}), ClaimState::needs_model);
  EXPECT_EQ(state({O::missing}), ClaimState::needs_model);
  EXPECT_EQ(state({O::yes, O::yes}), ClaimState::holds);
  EXPECT_EQ(state({O::yes, O::no}), ClaimState::in_part);
  EXPECT_EQ(state({O::yes, O::undecided}), ClaimState::in_part);
  EXPECT_EQ(state({O::yes, O::missing}), ClaimState::in_part);
  EXPECT_EQ(state({O::no, O::undecided}), ClaimState::fails);
  EXPECT_EQ(state({O::undecided, O::missing}), ClaimState::measured);
  EXPECT_EQ(parts_text({{"8k", O::yes, "1 against 2"}, {"16k", O::missing, ""}}),
            "holds: 8k (1 against 2); not measured: 16k");
}

}  // namespace
}  // namespace mrrope::report
