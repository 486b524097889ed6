// SPDX-License-Identifier: Apache-2.0
// Every claim of the MrRoPE paper that can be checked, with the result.
#pragma once

#include <string>
#include <vector>

#include "report/charts/data_table.h"
#include "report/record.h"

namespace mrrope::report {

enum class ClaimState { holds, fails, needs_model };
const char* to_string(ClaimState state) noexcept;  // "holds", "does not hold", "needs a model"

struct Claim {
  std::string id;
  std::string place;  // in the paper
  std::string says;   // in our words
  std::string found;  // what mrrope computes
  ClaimState state = ClaimState::needs_model;
  std::string measured;  // by the runs given; empty: none of them measured it
};

// Computed on the spot, except for what `runs` measured.
std::vector<Claim> claims_of(const std::vector<RunRecord>& runs);

DataTable table_of(const std::vector<Claim>& claims);

}  // namespace mrrope::report
