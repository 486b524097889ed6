// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the known word that a misspelled one is closest to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mrrope {

// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest distance; empty where all of them differ in more than a third of
// the letters. Upper and lower case count as equal.
std::string closest(std::string_view word, const std::vector<std::string>& candidates);

// "did you mean X? " or nothing: the beginning of a hint.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

std::string lower_case(std::string_view text);

}  // namespace mrrope
