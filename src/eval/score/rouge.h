// SPDX-License-Identifier: Apache-2.0
// How much of an expected answer a text gives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mrrope::eval {

// Whether words of more than three letters count by their stems (porter.h).
enum class Stemming { off, on };

// Lower-case runs of [a-z0-9]; everything else separates.
std::vector<std::string> rouge_words(std::string_view text, Stemming stemming = Stemming::off);

// ROUGE-1 recall as the Python package rouge_score computes it: of the words of `expected`, counted
// with repetition, the share that `text` has. 0 where `expected` has no word.
double rouge1_recall(std::string_view expected, std::string_view text,
                     Stemming stemming = Stemming::off);

// Whether `text` contains `expected` exactly, and not as part of a longer word or number.
bool contains_answer(std::string_view expected, std::string_view text);

}  // namespace mrrope::eval
