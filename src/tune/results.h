// SPDX-License-Identifier: Apache-2.0
// What a search found, as JSON for reports and as text for a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tune/search.h"

namespace mrrope::tune {

// results.json: weight, passes, chosen, front, path, trials {name, origin, plan, parameters,
// headroom, rung_step, texts, complete, objective, log_perplexity, retrieval, each with stderr},
// factors of the chosen plan, of pro and of yarn.
nlohmann::ordered_json to_json(const SearchResult& result, const Space& space, double weight);

// The front, the chosen point marked, and the published methods that were measured in full.
std::string to_text(const SearchResult& result);

}  // namespace mrrope::tune
