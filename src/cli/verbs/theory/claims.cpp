// SPDX-License-Identifier: Apache-2.0
// mrrope theory claims: the paper's claims, and what comes out.
#include "report/paper/claims.h"

#include <memory>

#include "base/text.h"
#include "cli/app.h"
#include "cli/verbs/theory/output.h"
#include "report/paper/paper.h"

namespace mrrope::cli {

namespace {

using nlohmann::ordered_json;

struct ClaimsFlags : TheoryFlags {
  std::vector<std::string> results;
};

void run_claims(const ClaimsFlags& flags) {
  std::vector<RunRecord> runs;
  if (!flags.results.empty()) runs = read_records(flags.results);
  for (const RunRecord& r : runs) {
    if (!r.problem.empty()) note(cat(r.folder, " is left out: ", r.problem));
  }
  const std::vector<Claim> claims = claims_of(runs);
  std::size_t counts[3] = {};
  TheoryResult result;
  result.title = "What the paper claims, and what comes out";
  ordered_json& list = result.json["claims"] = ordered_json::array();
  std::string words;
  for (const Claim& c : claims) {
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
  result.json["paper"] = paper();
  result.tables = {table_of(claims)};
  for (const DataTable& t : beside_the_paper(runs)) result.tables.push_back(t);
  // A terminal reads lines better than a table of six wide columns.
  const bool to_file = !flags.html.empty() || !flags.csv.empty();
  result.words = to_file ? summary : summary + "\n" + words;
  if (!to_file) result.tables.erase(result.tables.begin());
  print_theory(flags, result);
}

}  // namespace

void add_theory_claims(CLI::App& theory) {
  auto flags = std::make_shared<ClaimsFlags>();
  CLI::App* claims = theory.add_subcommand("claims", "The paper's claims, checked one by one");
  claims->add_option("--results", flags->results, "Folders of mrrope eval -o that speak to them")
      ->type_name("DIR")
      ->take_all();
  add_theory_output(*claims, *flags);
  claims->footer(
      "Examples:\n  mrrope theory claims\n"
      "  mrrope theory claims --results run1 --results run2 --html claims.html");
  claims->callback([flags] { run_claims(*flags); });
}

}  // namespace mrrope::cli
