// SPDX-License-Identifier: Apache-2.0
#include "eval/score/rouge_lsum.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "eval/score/rouge.h"

namespace mrrope::eval {

namespace {

using Words = std::vector<std::string>;

std::vector<Words> sentences(std::string_view text) {
  std::vector<Words> list;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) list.push_back(rouge_words(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return list;
}

// Marks the words of `a` that belong to the longest common subsequence with `b`. Of several such
// subsequences, the one found from the end, giving up words of `b` only where that loses nothing
// that giving up a word of `a` would keep.
void mark_common(const Words& a, const Words& b, std::vector<char>& marked) {
  const std::size_t width = b.size() + 1;
  std::vector<int> longest((a.size() + 1) * width, 0);
  const auto at = [&](std::size_t i, std::size_t j) -> int& { return longest[i * width + j]; };
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      at(i, j) = a[i - 1] == b[j - 1] ? at(i - 1, j - 1) + 1 : std::max(at(i - 1, j), at(i, j - 1));
    }
  }
  for (std::size_t i = a.size(), j = b.size(); i > 0 && j > 0;) {
    if (a[i - 1] == b[j - 1]) {
      marked[i - 1] = 1;
      --i, --j;
    } else if (at(i, j - 1) > at(i - 1, j)) {
      --j;
    } else {
      --i;
    }
  }
}

std::map<std::string, int> counts(const std::vector<Words>& list, std::size_t& total) {
  std::map<std::string, int> result;
  for (const Words& words : list) {
    for (const std::string& word : words) ++result[word];
    total += words.size();
  }
  return result;
}

}  // namespace

double rouge_lsum(std::string_view expected, std::string_view text) {
  const std::vector<Words> wanted = sentences(expected);
  const std::vector<Words> given = sentences(text);
  std::size_t wanted_words = 0;
  std::size_t given_words = 0;
  std::map<std::string, int> wanted_left = counts(wanted, wanted_words);
  std::map<std::string, int> given_left = counts(given, given_words);
  std::size_t hits = 0;
  for (const Words& sentence : wanted) {
    std::vector<char> marked(sentence.size(), 0);
    for (const Words& other : given) mark_common(sentence, other, marked);
    for (std::size_t i = 0; i < sentence.size(); ++i) {
      if (!marked[i] || wanted_left[sentence[i]] == 0 || given_left[sentence[i]] == 0) continue;
      --wanted_left[sentence[i]];
      --given_left[sentence[i]];
      ++hits;
    }
  }
  if (hits == 0) return 0;
  const double precision = double(hits) / double(given_words);
  const double recall = double(hits) / double(wanted_words);
  return 2 * precision * recall / (precision + recall);
}

}  // namespace mrrope::eval
