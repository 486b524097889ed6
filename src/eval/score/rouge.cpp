// SPDX-License-Identifier: Apache-2.0
#include "eval/score/rouge.h"

#include <map>

namespace mrrope::eval {

namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || is_upper(c) || (c >= '0' && c <= '9'); }

}  // namespace

std::vector<std::string> rouge_words(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : text) {
    if (is_word(c)) {
      if (!inside) words.emplace_back();
      words.back().push_back(is_upper(c) ? char(c - 'A' + 'a') : c);
    }
    inside = is_word(c);
  }
  return words;
}

double rouge1_recall(std::string_view expected, std::string_view text) {
  std::map<std::string, int> there;
  for (const std::string& word : rouge_words(text)) ++there[word];
  const std::vector<std::string> wanted = rouge_words(expected);
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
