// SPDX-License-Identifier: Apache-2.0
#include "report/paper/claims.h"

#include <algorithm>

#include "base/text.h"

namespace mrrope::report {

const char* to_string(ClaimState state) noexcept {
  switch (state) {
    case ClaimState::holds:
      return "holds";
    case ClaimState::fails:
      return "does not hold";
    case ClaimState::in_part:
      return "holds in part";
    case ClaimState::misprint:
      return "misprint";
    case ClaimState::needs_model:
      return "needs a model";
    case ClaimState::measured:
      return "measured";
  }
  return "needs a model";
}

const char* to_string(ClaimPart::Outcome outcome) noexcept {
  switch (outcome) {
    case ClaimPart::Outcome::yes:
      return "holds";
    case ClaimPart::Outcome::no:
      return "does not hold";
    case ClaimPart::Outcome::undecided:
      return "not decided";
    case ClaimPart::Outcome::missing:
      return "not measured";
  }
  return "not measured";
}

ClaimState state_of_parts(const std::vector<ClaimPart>& parts) {
  const auto any = [&](ClaimPart::Outcome outcome) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const ClaimPart& p) { return p.outcome == outcome; });
  };
  const bool yes = any(ClaimPart::Outcome::yes);
  const bool no = any(ClaimPart::Outcome::no);
  const bool open = any(ClaimPart::Outcome::undecided) || any(ClaimPart::Outcome::missing);
  if (yes) return no || open ? ClaimState::in_part : ClaimState::holds;
  if (no) return ClaimState::fails;
  return any(ClaimPart::Outcome::undecided) ? ClaimState::measured : ClaimState::needs_model;
}

std::string parts_text(const std::vector<ClaimPart>& parts) {
  std::string out;
  for (const auto outcome : {ClaimPart::Outcome::yes, ClaimPart::Outcome::no,
                             ClaimPart::Outcome::undecided, ClaimPart::Outcome::missing}) {
    std::string list;
    for (const ClaimPart& p : parts) {
      if (p.outcome != outcome) continue;
      list += cat(list.empty() ? "" : ", ", p.name,
                  p.numbers.empty() ? "" : cat(p.name.empty() ? "" : " ", "(", p.numbers, ")"));
    }
    if (!list.empty()) out += cat(out.empty() ? "" : "; ", to_string(outcome), ": ", list);
  }
  return out;
}

std::vector<Claim> claims_of(const std::vector<RunRecord>& runs) {
  std::vector<Claim> out = theory_claims();
  for (Claim& c : result_claims(runs)) out.push_back(std::move(c));
  return out;
}

DataTable table_of(const std::vector<Claim>& claims) {
  DataTable table;
  table.caption = "Claims of the paper";
  table.header = {"claim", "state",    "place",          "says",   "decided by",
                  "found", "measured", "other settings", "command"};
  table.text_columns = table.header.size();
  for (const Claim& c : claims) {
    table.rows.push_back({c.id, to_string(c.state), c.place, c.says, c.rule, c.found, c.measured,
                          c.elsewhere, c.command});
  }
  return table;
}

}  // namespace mrrope::report
