// SPDX-License-Identifier: Apache-2.0
#include "report/paper/claims.h"

#include "base/text.h"
#include "report/paper/paper.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

using nlohmann::ordered_json;

TheoryFigure claims_figure(const std::vector<report::RunRecord>& runs) {
  const std::vector<report::Claim> claims = claims_of(runs);
  std::size_t counts[3] = {};
  TheoryFigure result;
  result.title = "What the paper claims, and what comes out";
  ordered_json& list = result.json["claims"] = ordered_json::array();
  std::string words;
  for (const report::Claim& c : claims) {
    ++counts[std::size_t(c.state)];
    list.push_back({{"id", c.id},
                    {"place", c.place},
                    {"says", c.says},
                    {"state", to_string(c.state)},
                    {"found", c.found},
                    {"measured", c.measured.empty() ? ordered_json() : ordered_json(c.measured)}});
    words += cat("\n", c.id, ": ", to_string(c.state), " (", c.place, ")\n  says: ", c.says,
                 "\n  found: ", c.found, "\n",
                 c.measured.empty() ? "" : cat("  measured: ", c.measured, "\n"));
  }
  const std::string summary = cat(claims.size(), " claims: ", counts[0], " hold, ", counts[1],
                                  " do not hold as stated, ", counts[2], " need a model.");
  result.json["paper"] = report::paper();
  result.data = table_of(claims);
  result.terminal = compared_with_paper(runs);
  result.page = result.terminal;
  result.page.insert(result.page.begin(), result.data);
  result.words = summary;
  result.details = "\n" + words;  // a terminal shows lines better than a table of six wide columns
  return result;
}

}  // namespace mrrope::theory
