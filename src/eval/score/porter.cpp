// SPDX-License-Identifier: Apache-2.0
#include "eval/score/porter.h"

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string_view>
#include <vector>

namespace mrrope::eval {

namespace {

// For each letter whether it is a consonant: y is one at the start and after a vowel.
std::vector<bool> consonants(std::string_view word) {
  std::vector<bool> flags;
  for (const char c : word) {
    const bool vowel = std::string_view("aeiou").find(c) != std::string_view::npos;
    flags.push_back(c == 'y' ? flags.empty() || !flags.back() : !vowel);
  }
  return flags;
}

// Porter's m: how often a consonant follows a vowel.
int measure(std::string_view stem) {
  const std::vector<bool> consonant = consonants(stem);
  int m = 0;
  for (std::size_t i = 1; i < consonant.size(); ++i) m += consonant[i] && !consonant[i - 1] ? 1 : 0;
  return m;
}

bool has_vowel(std::string_view stem) {
  for (const bool consonant : consonants(stem)) {
    if (!consonant) return true;
  }
  return false;
}

bool ends_in_consonant(std::string_view word) { return !word.empty() && consonants(word).back(); }

bool ends_double(std::string_view word) {
  const std::size_t n = word.size();
  return n >= 2 && word[n - 1] == word[n - 2] && ends_in_consonant(word);
}

// Consonant, vowel, consonant other than w, x, y; or a word of vowel and consonant.
bool ends_short(std::string_view word) {
  const std::vector<bool> c = consonants(word);
  const std::size_t n = word.size();
  if (n == 2) return !c[0] && c[1];
  return n >= 3 && c[n - 3] && !c[n - 2] && c[n - 1] &&
         std::string_view("wxy").find(word[n - 1]) == std::string_view::npos;
}

struct Rule {
  std::string_view ending;
  std::string_view instead;
};

std::string_view without(std::string_view word, std::string_view ending) {
  return word.substr(0, word.size() - ending.size());
}

// The first rule whose ending fits is the only one tried: it applies where the measure of what is
// left is above `least`.
std::string replaced(const std::string& word, std::initializer_list<Rule> rules, int min_measure) {
  for (const Rule& rule : rules) {
    if (!word.ends_with(rule.ending)) continue;
    const std::string_view stem = without(word, rule.ending);
    return measure(stem) > min_measure ? std::string(stem).append(rule.instead) : word;
  }
  return word;
}

std::string plural(const std::string& word) {
  if (word.ends_with("ies")) return std::string(without(word, word.size() == 4 ? "s" : "es"));
  return replaced(word, {{"sses", "ss"}, {"ss", "ss"}, {"s", ""}}, -1);
}

std::string past(const std::string& word) {
  if (word.ends_with("ied")) return std::string(without(word, word.size() == 4 ? "d" : "ed"));
  if (word.ends_with("eed")) return replaced(word, {{"eed", "ee"}}, 0);
  for (const std::string_view ending : {"ed", "ing"}) {
    if (!word.ends_with(ending) || !has_vowel(without(word, ending))) continue;
    const std::string stem(without(word, ending));
    if (stem.ends_with("at") || stem.ends_with("bl") || stem.ends_with("iz")) return stem + "e";
    if (ends_double(stem)) {
      const bool kept = std::string_view("lsz").find(stem.back()) != std::string_view::npos;
      return kept ? stem : stem.substr(0, stem.size() - 1);
    }
    return measure(stem) == 1 && ends_short(stem) ? stem + "e" : stem;
  }
  return word;
}

std::string final_y(std::string word) {
  if (word.ends_with("y") && word.size() > 2 && ends_in_consonant(without(word, "y"))) {
    word.back() = 'i';
  }
  return word;
}

std::string second(const std::string& word) {
  if (word.ends_with("alli") && measure(without(word, "alli")) > 0) {
    return second(std::string(without(word, "li")));
  }
  if (word.ends_with("logi")) {
    return measure(without(word, "ogi")) > 0 ? std::string(without(word, "i")) : word;
  }
  return replaced(word,
                  {{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},   {"anci", "ance"},
                   {"izer", "ize"},    {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"},
                   {"eli", "e"},       {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"},
                   {"ator", "ate"},    {"alism", "al"},    {"iveness", "ive"}, {"fulness", "ful"},
                   {"ousness", "ous"}, {"aliti", "al"},    {"iviti", "ive"},   {"biliti", "ble"},
                   {"fulli", "ful"}},
                  0);
}

std::string third(const std::string& word) {
  return replaced(word,
                  {{"icate", "ic"},
                   {"ative", ""},
                   {"alize", "al"},
                   {"iciti", "ic"},
                   {"ical", "ic"},
                   {"ful", ""},
                   {"ness", ""}},
                  0);
}

std::string fourth(const std::string& word) {
  if (word.ends_with("ion")) {
    const std::string_view stem = without(word, "ion");
    const bool fits = stem.ends_with("s") || stem.ends_with("t");
    return fits && measure(stem) > 1 ? std::string(stem) : word;
  }
  return replaced(word,
                  {{"al", ""},
                   {"ance", ""},
                   {"ence", ""},
                   {"er", ""},
                   {"ic", ""},
                   {"able", ""},
                   {"ible", ""},
                   {"ant", ""},
                   {"ement", ""},
                   {"ment", ""},
                   {"ent", ""},
                   {"ou", ""},
                   {"ism", ""},
                   {"ate", ""},
                   {"iti", ""},
                   {"ous", ""},
                   {"ive", ""},
                   {"ize", ""}},
                  1);
}

std::string tidied(std::string word) {
  if (word.ends_with("e")) {
    const std::string_view stem = without(word, "e");
    const int m = measure(stem);
    if (m > 1 || (m == 1 && !ends_short(stem))) word.pop_back();
  }
  if (word.ends_with("ll") && measure(without(word, "l")) > 1) word.pop_back();
  return word;
}

}  // namespace

std::string porter_stem(std::string word) {
  static const std::map<std::string, std::string, std::less<>> irregular = {
      {"skies", "sky"},      {"sky", "sky"},          {"dying", "die"},
      {"lying", "lie"},      {"tying", "tie"},        {"news", "news"},
      {"innings", "inning"}, {"inning", "inning"},    {"outings", "outing"},
      {"outing", "outing"},  {"cannings", "canning"}, {"canning", "canning"},
      {"howe", "howe"},      {"proceed", "proceed"},  {"exceed", "exceed"},
      {"succeed", "succeed"}};
  if (const auto it = irregular.find(word); it != irregular.end()) return it->second;
  if (word.size() <= 2) return word;
  return tidied(fourth(third(second(final_y(past(plural(word)))))));
}

}  // namespace mrrope::eval
