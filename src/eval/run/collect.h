// SPDX-License-Identifier: Apache-2.0
// Reads the journal of a run back for the results of its task: the one collector of all tasks.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "eval/run/task.h"

namespace mrrope::eval {

// Throws Error (corrupt) where run.json is of another task.
void check_task(const nlohmann::ordered_json& run, std::string_view task);

// The methods of run.json by name, with their index there. May throw an exception of the JSON
// library.
std::map<std::string, std::size_t> method_indices(const nlohmann::ordered_json& run);

// Calls use(method, line) for every line that holds an answer, in their order. A prompt without an
// answer is sent again by the next run, and then the later line counts. Returns how many never got
// one. Throws Error (corrupt) on a line of another task or method, and what use and the JSON
// library throw.
std::size_t collect(
    const nlohmann::ordered_json& run, const std::vector<nlohmann::ordered_json>& units,
    const MakePlaceOf& places,
    const std::function<void(std::size_t method, const nlohmann::ordered_json& unit)>& use);

}  // namespace mrrope::eval
