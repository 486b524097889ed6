// SPDX-License-Identifier: Apache-2.0
// Every method against every other at every length: the one comparison of all tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/stats/statistics.h"

namespace mrrope::eval {

// Below this corrected p value a difference is called significant.
constexpr double kSignificant = 0.05;

struct Comparison {
  std::int64_t length = 0;
  std::string a, b;
  PairedDifference difference;  // of a from b, over the samples that both have
  double corrected_p = 1;       // Holm, over all pairs at this length
};

// difference(a, b, l): of the methods with these indices at lengths[l].
std::vector<Comparison> compare_methods(
    const std::vector<std::string>& methods, const std::vector<std::int64_t>& lengths,
    const std::function<PairedDifference(std::size_t a, std::size_t b, std::size_t l)>& difference);

// The comparisons of results.json, for scores from 0 to 1.
nlohmann::ordered_json comparisons_json(const std::vector<Comparison>& comparisons,
                                        const std::string& metric);

// A table for a terminal of those at one length; empty where there are none. over: what is paired,
// such as "documents"; size: of a difference, such as "+1.2 +-0.3 %".
std::string comparison_text(const std::vector<Comparison>& comparisons, std::int64_t length,
                            const std::string& over,
                            const std::function<std::string(const PairedDifference&)>& size);

// "12.3 +-0.4": 100 times a score, "-" where there is none; with a sign for a difference.
std::string percent_score(const Estimate& score);
std::string signed_points(const PairedDifference& difference);

}  // namespace mrrope::eval
