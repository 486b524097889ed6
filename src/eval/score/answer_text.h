// SPDX-License-Identifier: Apache-2.0
// Answers as text: how much of an expected one a text gives, as the Python package rouge_score
// computes it, and the parts of Unicode that scorers need.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mrrope::eval {

// Porter's stemmer as NLTK has it by default: the algorithm of 1980 with his later changes and some
// of NLTK's own (irregular words; "ies" and "ied" of four letters; y after a vowel stays). For a
// word of [a-z0-9]; digits count as consonants.
std::string porter_stem(std::string word);

// Whether words of more than three letters count by their stems.
enum class Stemming { off, on };

// Lower-case runs of [a-z0-9]; everything else separates.
std::vector<std::string> rouge_words(std::string_view text, Stemming stemming = Stemming::off);

// How many words of `a` are in `b`, each counted no more often than both have it.
template <typename Word>
std::size_t in_common(const std::vector<Word>& a, const std::vector<Word>& b) {
  std::map<Word, int> left;
  for (const Word& word : b) ++left[word];
  return std::size_t(std::count_if(a.begin(), a.end(), [&](const Word& word) {
    const auto at = left.find(word);
    return at != left.end() && at->second-- > 0;
  }));
}

// F1 of an answer of so many words, where so many were wanted; 0 where none was hit.
double f1(std::size_t hits, std::size_t wanted, std::size_t given);

// ROUGE-1 recall: of the words of `expected`, counted with repetition, the share that `text` has.
// 0 where `expected` has no word.
double rouge1_recall(std::string_view expected, std::string_view text,
                     Stemming stemming = Stemming::off);

// ROUGE-Lsum, F1, without stemming: sentences are lines; for each expected sentence the union of
// its longest common subsequences with all sentences of the text, every word counted no more often
// than both sides have it.
double rouge_lsum(std::string_view expected, std::string_view text);

// Whether `text` contains `expected` exactly, and not as part of a longer word or number.
bool contains_answer(std::string_view expected, std::string_view text);

// Each byte that is not UTF-8 counts as U+FFFD.
std::u32string to_characters(std::string_view text);
std::string to_utf8(std::u32string_view text);

bool is_blank(char32_t c);      // what Python's str.split() splits at
bool is_letter(char32_t c);     // of a word: a letter, a digit or an underscore
char32_t to_lower(char32_t c);  // Latin, Greek and Cyrillic

std::u32string lower(std::u32string text);
std::u32string upper(std::u32string text);
std::u32string_view stripped(std::u32string_view text);
std::vector<std::u32string> split_blanks(std::u32string_view text);

// Every one of these texts replaced by a blank, in this order.
std::u32string blanked(std::u32string text, const std::vector<std::u32string_view>& parts);

}  // namespace mrrope::eval
