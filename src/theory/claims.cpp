// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "base/text.h"
#include "report/paper/paper.h"
#include "theory/theory_figure.h"

namespace mrrope::theory {

using nlohmann::ordered_json;

TheoryFigure claims_figure() {
  const ordered_json& claims = report::paper().at("claims");
  TheoryFigure result;
  result.title = "What the paper claims, and what we find";
  result.json = {{"claims", claims}};
  result.data.caption = "Claims of the paper";
  result.data.header = {"id", "verdict", "place", "says", "reason", "command"};
  result.data.text_columns = result.data.header.size();
  std::map<std::string, int> counts;
  std::string lines;
  for (const ordered_json& claim : claims) {
    std::vector<std::string> row;
    for (const std::string& key : result.data.header) row.push_back(claim.at(key));
    lines += cat("\n", row[0], ": ", row[1], " (", row[2], ")\n  says: ", row[3],
                 "\n  reason: ", row[4], "\n  command: ", row[5], "\n");
    ++counts[row[1]];
    result.data.rows.push_back(std::move(row));
  }
  result.words = cat(claims.size(), " claims:");
  for (const auto& [verdict, n] : counts) {
    result.words += cat(result.words.back() == ':' ? " " : ", ", verdict, " ", n);
  }
  result.words +=
      ". Verdicts on results go by the numbers that the paper prints; open means that only a run "
      "can "
      "tell.";
  result.page = {result.data};
  result.details = "\n" + lines;  // a terminal shows lines better than a table of wide columns
  return result;
}

}  // namespace mrrope::theory
