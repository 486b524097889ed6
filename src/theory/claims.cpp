// SPDX-License-Identifier: Apache-2.0
#include "report/paper/claims.h"

#include <algorithm>

#include "base/text.h"
#include "report/paper/paper.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

using nlohmann::ordered_json;

namespace {

ordered_json or_null(const std::string& text) {
  return text.empty() ? ordered_json() : ordered_json(text);
}

}  // namespace

TheoryFigure claims_figure(const std::vector<report::RunRecord>& runs) {
  using report::ClaimState;
  const std::vector<report::Claim> claims = claims_of(runs);
  TheoryFigure result;
  result.title = "What the paper claims, and what comes out";
  ordered_json& list = result.json["claims"] = ordered_json::array();
  std::string words;
  for (const report::Claim& c : claims) {
    ordered_json parts = ordered_json::array();
    for (const report::ClaimPart& p : c.parts) {
      parts.push_back({{"part", p.name}, {"state", to_string(p.outcome)}, {"numbers", p.numbers}});
    }
    list.push_back({{"id", c.id},
                    {"place", c.place},
                    {"says", c.says},
                    {"decided_by", c.rule},
                    {"state", to_string(c.state)},
                    {"parts", parts},
                    {"found", c.found},
                    {"measured", or_null(c.measured)},
                    {"other_settings", or_null(c.elsewhere)},
                    {"command", or_null(c.command)}});
    const auto line = [](const char* what, const std::string& text) {
      return text.empty() ? std::string() : cat("  ", what, ": ", text, "\n");
    };
    words += cat(
        "\n", c.id, ": ", to_string(c.state), " (", c.place, ")\n", line("says", c.says),
        line("decided by", c.rule), line("found", c.found), line("measured", c.measured),
        line("other settings", c.elsewhere),
        c.measured.empty()
            ? line(c.state == ClaimState::needs_model ? "to decide it" : "to measure it", c.command)
            : "");
  }
  std::string summary = cat(claims.size(), " claims:");
  for (const ClaimState state :
       {ClaimState::holds, ClaimState::in_part, ClaimState::fails, ClaimState::misprint,
        ClaimState::measured, ClaimState::needs_model}) {
    const auto n = std::count_if(claims.begin(), claims.end(),
                                 [&](const report::Claim& c) { return c.state == state; });
    if (n > 0) summary += cat(summary.back() == ':' ? " " : ", ", to_string(state), " ", n);
  }
  summary +=
      ". Sentences about results are decided by the numbers that the paper prints, until "
      "--results gives runs of the same setting.";
  result.json["paper"] = report::paper();
  result.data = table_of(claims);
  result.terminal = compared_with_paper(runs);
  result.page = result.terminal;
  result.page.insert(result.page.begin(), result.data);
  result.words = summary;
  result.details = "\n" + words;  // a terminal shows lines better than a table of wide columns
  return result;
}

}  // namespace mrrope::theory
