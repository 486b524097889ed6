// SPDX-License-Identifier: Apache-2.0
// Words, names and prose written for this project (data/words.json) and drawn by seeded random
// numbers, for the built-in benchmark generators. Nothing is taken from another text. The texts of
// needles and the endings of Porter's stemmer are there as well.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

// Files that are part of the program: CMake turns each into a string (mrrope_embed).
namespace mrrope::embedded {
extern const char* const prompts_json;  // data/prompts.json
extern const char* const words_json;    // data/words.json
}  // namespace mrrope::embedded

namespace mrrope::eval {

// A stream of random numbers that depends only on these words and numbers.
Random random_for(std::uint64_t seed, std::string_view what, std::uint64_t a = 0,
                  std::uint64_t b = 0, std::uint64_t c = 0);

template <typename T>
void shuffle(std::vector<T>& list, Random& random) {
  for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random.below(i)]);
}

// `count` of 0 .. n-1, each once, ascending. count <= n.
std::vector<std::size_t> choose(std::size_t n, std::size_t count, Random& random);

// A list of data/words.json.
const std::vector<std::string>& word_list(std::string_view name);

std::string random_key(Random& random);                    // an adjective and a noun: "calm-harbor"
std::string random_digits(Random& random, std::size_t n);  // no leading zero
std::string random_uuid(Random& random);                   // version 4
std::string random_letters(Random& random, std::size_t n, char first);  // from 'a' or 'A' on

// Everyday adjectives and nouns, a different one for each index.
std::string plain_word(std::uint64_t index);
std::uint64_t plain_words();  // how many there are

// Compounds of everyday nouns ("harborlamp"), a different one for each index.
std::string compound_word(std::uint64_t index);
std::uint64_t compound_words();  // how many there are

// Invented proper names, a different one for each index below 42^3.
std::string town_name(std::uint64_t index);
std::string person_name(std::uint64_t index);

// Sentence after sentence of small-town prose, without any digit.
std::string prose_sentence(Random& random);

}  // namespace mrrope::eval
