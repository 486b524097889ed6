// SPDX-License-Identifier: Apache-2.0
#include "eval/score/rouge.h"

#include <map>

#include "eval/score/porter.h"

namespace mrrope::eval {

namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || is_upper(c) || (c >= '0' && c <= '9'); }

}  // namespace

std::vector<std::string> rouge_words(std::string_view text, Stemming stemming) {
  // The two characters outside ASCII whose lower case is, or begins with, a letter of it.
  constexpr std::string_view kKelvin = "\xe2\x84\xaa";
  constexpr std::string_view kDottedI = "\xc4\xb0";
  std::vector<std::string> words;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    bool ends = !is_word(c);
    if (text.substr(i).starts_with(kKelvin)) {
      c = 'k';
      i += kKelvin.size() - 1;
      ends = false;
    } else if (text.substr(i).starts_with(kDottedI)) {
      c = 'i';
      i += kDottedI.size() - 1;
    } else if (ends) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    words.back().push_back(is_upper(c) ? char(c - 'A' + 'a') : c);
    inside = !ends;
  }
  if (stemming == Stemming::on) {
    for (std::string& word : words) {
      if (word.size() > 3) word = porter_stem(word);
    }
  }
  return words;
}

double rouge1_recall(std::string_view expected, std::string_view text, Stemming stemming) {
  std::map<std::string, int> there;
  for (const std::string& word : rouge_words(text, stemming)) ++there[word];
  const std::vector<std::string> wanted = rouge_words(expected, stemming);
  if (wanted.empty()) return 0;
  int found = 0;
  for (const std::string& word : wanted) {
    if (there[word]-- > 0) ++found;
  }
  return double(found) / double(wanted.size());
}

bool contains_answer(std::string_view expected, std::string_view text) {
  if (expected.empty()) return false;
  for (std::size_t at = text.find(expected); at != std::string_view::npos;
       at = text.find(expected, at + 1)) {
    const std::size_t end = at + expected.size();
    const bool starts = at == 0 || !is_word(text[at - 1]) || !is_word(expected.front());
    const bool ends = end == text.size() || !is_word(text[end]) || !is_word(expected.back());
    if (starts && ends) return true;
  }
  return false;
}

}  // namespace mrrope::eval
