// SPDX-License-Identifier: Apache-2.0
// Every claim of the MrRoPE paper that can be checked, with the result. A claim is a row of a
// table: what the paper says, in our words, and the rule that decides it. Equations are decided by
// computing them; sentences about results by the numbers that the paper prints and, if runs are
// given, by those runs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "mrrope/plan.h"
#include "report/charts/data_table.h"
#include "report/paper/paper.h"
#include "report/record.h"

namespace mrrope::report {

enum class ClaimState { holds, fails, in_part, misprint, needs_model, measured };
const char* to_string(ClaimState state) noexcept;

// One length, task, setting or model of a claim.
struct ClaimPart {
  enum class Outcome { yes, no, undecided, missing };
  std::string name;
  Outcome outcome = Outcome::missing;
  std::string numbers;  // behind it
};
const char* to_string(ClaimPart::Outcome outcome) noexcept;

struct Claim {
  std::string id;
  std::string place;  // in the paper
  std::string says;   // in our words
  std::string rule;   // that decides it, in words
  ClaimState state = ClaimState::needs_model;
  std::vector<ClaimPart> parts;  // behind the state; may be empty
  std::string found;             // by computing, or from the numbers that the paper prints
  std::string measured;          // by runs of the paper's setting; empty: there are none
  std::string elsewhere;         // by runs of other models or settings, which decide nothing here
  std::string command;           // whose results decide it; empty: none can
};

// holds: every part does. does not hold: some part does not, and none does. holds in part: some
// parts do, others do not or are not known. measured: no part is decided.
ClaimState state_of_parts(const std::vector<ClaimPart>& parts);

// "holds: 8k (3.63 against 3.68); does not hold: 32k (4.11 against 4.07)".
std::string parts_text(const std::vector<ClaimPart>& parts);

// A plan of a geometry by method and scale. Tests give others than the library's.
using PlanMaker = std::function<Plan(const Geometry&, const std::string& method, double scale)>;
Plan usual_plan(const Geometry& geometry, const std::string& method, double scale);

// What computing decides.
std::vector<Claim> theory_claims(const PlanMaker& plan_of = usual_plan,
                                 const nlohmann::ordered_json& printed = paper());
// What numbers decide: those that `printed` has, and those of runs.
std::vector<Claim> result_claims(const std::vector<RunRecord>& runs,
                                 const nlohmann::ordered_json& printed = paper());

// Both.
std::vector<Claim> claims_of(const std::vector<RunRecord>& runs);

DataTable table_of(const std::vector<Claim>& claims);

// The output of mrrope theory attention --json, which decides the claims about attention. Throws
// Error: failed, corrupt.
RunRecord read_attention(const std::filesystem::path& file);

}  // namespace mrrope::report
