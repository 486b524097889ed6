// SPDX-License-Identifier: Apache-2.0
// The search behind a tuned plan, as a report shows it: the front of perplexity and answers with
// the chosen point, the path of the best, and its factors next to those of Pro and YaRN.
#pragma once

#include <string>
#include <vector>

#include "report/figures.h"

namespace mrrope::report {

inline constexpr const char* kSearchSection = "Search for a better plan";

// results.json of mrrope tune with everything that the functions below read. Throws Error
// (corrupt), naming the key.
nlohmann::ordered_json checked_search(nlohmann::ordered_json results);

// File names are not yet told apart.
std::vector<Figure> search_figures(const RunRecord& record);

// What was found, what it cost, and what the proof says of it.
std::vector<std::string> search_text(const nlohmann::ordered_json& search);

// Every published plan compared with the found one, on held-out text. Empty without a proof.
DataTable proof_table(const RunRecord& record);

}  // namespace mrrope::report
