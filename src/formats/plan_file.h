// SPDX-License-Identifier: Apache-2.0
// Plan files: a plan or a ladder as JSON, the exchange format of plan, tune, eval, generate and
// export. A file carries the request as well as the numbers; reading it computes the plan again and
// refuses a file whose numbers are not those of its request.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/context.h"

namespace mrrope {

nlohmann::ordered_json geometry_json(const Geometry& geometry);
nlohmann::ordered_json plan_json(const Plan& plan);
nlohmann::ordered_json ladder_json(const Ladder& ladder);

// The rungs that ladder_json() lists: with a near part several rungs share a plan, and the last of
// them stands for all.
std::vector<Rung> listed_rungs(const Ladder& ladder);

// Throw Error (corrupt) naming the key.
Plan plan_from_json(const nlohmann::json& json);
PlanOrLadder plan_or_ladder_from_json(const nlohmann::json& json);

PlanOrLadder read_plan_file(const std::filesystem::path& path);

}  // namespace mrrope
