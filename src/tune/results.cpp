// SPDX-License-Identifier: Apache-2.0
#include "tune/results.h"

#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "base/text_table.h"
#include "eval/run/method_under_test.h"
#include "formats/plan_file.h"

namespace mrrope::tune {

using nlohmann::ordered_json;

namespace {

ordered_json estimate(const eval::Estimate& e) {
  return {{"value", json_or_null(e.value)}, {"stderr", json_or_null(e.error)}, {"n", e.n}};
}

ordered_json factors_of(const Space& space, const char* method) {
  Extension e;
  e.method = method;
  e.scale = double(space.ctx) / double(space.geometry.train_length);
  return make_plan(space.geometry, e).factor();
}

TextRow row(const Trial& t, const std::string& mark) {
  return {cat(mark, t.proposal.name), fixed(std::exp(t.log_perplexity.value), 3),
          fixed(t.retrieval.value, 3), fixed(t.objective.value, 4)};
}

}  // namespace

ordered_json to_json(const SearchResult& result, const Space& space, double weight) {
  ordered_json out = {
      {"weight", weight},      {"passes", result.passes},       {"chosen", result.best},
      {"front", result.front}, {"path", ordered_json::array()}, {"trials", ordered_json::array()}};
  for (const SearchResult::Step& step : result.path) {
    out["path"].push_back({{"passes", step.passes},
                           {"trial", step.trial},
                           {"objective", result.trials[step.trial].objective.value}});
  }
  for (const Trial& t : result.trials) {
    const Proposal& c = t.proposal;
    const Plan& last = c.ladder.rungs().back().plan;
    const ordered_json numbers = plan_json(last);
    out["trials"].push_back(
        {{"name", c.name},
         {"origin", c.origin},
         {"plan", c.plan},
         {"method", c.extension.method},
         {"parameters", numbers["parameters"]},
         {"boundaries", numbers["boundaries"]},
         {"headroom", c.headroom},
         {"rung_step", c.ladder.elastic() ? ordered_json(c.rung_step) : ordered_json()},
         {"texts", t.measured.size()},
         {"complete", t.complete},
         {"objective", estimate(t.objective)},
         {"log_perplexity", estimate(t.log_perplexity)},
         {"retrieval", estimate(t.retrieval)}});
    if (c.near) {
      out["trials"].back()["near"] = {{"length", c.near->length}, {"step", c.near->step}};
    }
  }
  out["factors"] = {
      {"chosen", result.trials[result.best].proposal.ladder.rungs().back().plan.factor()},
      {"pro", factors_of(space, "pro")},
      {"yarn", factors_of(space, "yarn")}};
  return out;
}

std::string to_text(const SearchResult& result) {
  std::vector<TextRow> table = {{"plan", "perplexity", "answers", "objective"}};
  for (const std::size_t i : result.front) {
    table.push_back(row(result.trials[i], i == result.best ? "* " : "  "));
  }
  std::string text =
      cat("The front of ", result.trials.size(), " plans tried in ", fixed(result.passes, 1),
          " passes (perplexity: mean over bands; answers: log-probability per token):\n",
          aligned(table));
  std::vector<TextRow> others;
  for (const Trial& t : result.trials) {
    if (t.proposal.origin == "published" && t.complete) others.push_back(row(t, "  "));
  }
  if (!others.empty()) text += cat("Published plans on the same texts:\n", aligned(others));
  return text;
}

}  // namespace mrrope::tune
