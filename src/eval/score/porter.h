// SPDX-License-Identifier: Apache-2.0
// Porter's stemmer in the form that the Python package rouge_score uses: NLTK's default, which is
// Porter's algorithm of 1980 with his later changes and some of NLTK's own (irregular words; "ies"
// and "ied" of four letters; y after a vowel stays).
#pragma once

#include <string>

namespace mrrope::eval {

// The stem of a word of [a-z0-9]. Digits count as consonants.
std::string porter_stem(std::string word);

}  // namespace mrrope::eval
