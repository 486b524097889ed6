// SPDX-License-Identifier: Apache-2.0
#include "eval/score/answer_text.h"

#include "base/utf8.h"
#include "base/words.h"
#include "eval/text/word_list.h"

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
  const std::vector<bool> flags = consonants(stem);
  return std::find(flags.begin(), flags.end(), false) != flags.end();
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

std::string_view without(std::string_view word, std::string_view ending) {
  return word.substr(0, word.size() - ending.size());
}

// The first rule of a list (an ending, and what comes instead of it) whose ending fits is the only
// one tried: it applies where the measure of what is left is above `min_measure`.
std::string replaced(const std::string& word, const char* list, int min_measure) {
  for (const std::string_view rule : word_list(list)) {
    const std::string_view ending = rule.substr(0, rule.find(' '));
    if (!word.ends_with(ending)) continue;
    const std::string_view stem = without(word, ending);
    const std::string_view instead = rule.substr(std::min(rule.size(), ending.size() + 1));
    return measure(stem) > min_measure ? std::string(stem).append(instead) : word;
  }
  return word;
}

std::string plural(const std::string& word) {
  if (word.ends_with("ies")) return std::string(without(word, word.size() == 4 ? "s" : "es"));
  return replaced(word, "porter_plural", -1);
}

std::string past(const std::string& word) {
  if (word.ends_with("ied")) return std::string(without(word, word.size() == 4 ? "d" : "ed"));
  if (word.ends_with("eed")) {
    return measure(without(word, "eed")) > 0 ? std::string(without(word, "d")) : word;
  }
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
  return replaced(word, "porter_second", 0);
}

std::string fourth(const std::string& word) {
  if (word.ends_with("ion")) {
    const std::string_view stem = without(word, "ion");
    const bool fits = stem.ends_with("s") || stem.ends_with("t");
    return fits && measure(stem) > 1 ? std::string(stem) : word;
  }
  return replaced(word, "porter_fourth", 1);
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

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || is_upper(c) || (c >= '0' && c <= '9'); }

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

}  // namespace

std::string porter_stem(std::string word) {
  for (const std::string& irregular : word_list("porter_irregular")) {
    if (irregular.starts_with(word + " ")) return irregular.substr(word.size() + 1);
  }
  if (word.size() <= 2) return word;
  word = second(final_y(past(plural(word))));
  return tidied(fourth(replaced(word, "porter_third", 0)));
}

std::vector<std::string> rouge_words(std::string_view text, Stemming stemming) {
  // The two characters outside ASCII whose lower case is, or begins with, a letter of it: the
  // Kelvin sign, and I with a dot, whose dot ends a word.
  const std::string plain =
      mrrope::replaced(mrrope::replaced(std::string(text), "\xe2\x84\xaa", "k"), "\xc4\xb0", "i ");
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : plain) {
    if (is_word(c) && !inside) words.emplace_back();
    inside = is_word(c);
    if (inside) words.back().push_back(is_upper(c) ? char(c - 'A' + 'a') : c);
  }
  if (stemming == Stemming::on) {
    for (std::string& word : words) {
      if (word.size() > 3) word = porter_stem(word);
    }
  }
  return words;
}

double f1(std::size_t hits, std::size_t wanted, std::size_t given) {
  if (hits == 0) return 0;
  const double precision = double(hits) / double(given);
  const double recall = double(hits) / double(wanted);
  return 2 * precision * recall / (precision + recall);
}

double rouge1_recall(std::string_view expected, std::string_view text, Stemming stemming) {
  const Words wanted = rouge_words(expected, stemming);
  if (wanted.empty()) return 0;
  return double(in_common(wanted, rouge_words(text, stemming))) / double(wanted.size());
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

double rouge_lsum(std::string_view expected, std::string_view text) {
  const std::vector<Words> given = sentences(text);
  Words found;
  for (const Words& sentence : sentences(expected)) {
    std::vector<char> marked(sentence.size(), 0);
    for (const Words& other : given) mark_common(sentence, other, marked);
    for (std::size_t i = 0; i < sentence.size(); ++i) {
      if (marked[i]) found.push_back(sentence[i]);
    }
  }
  const Words all = rouge_words(text);
  return f1(in_common(found, all), rouge_words(expected).size(), all.size());
}

std::u32string to_characters(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    out.push_back(c.size > 0 ? c.code : 0xfffd);
    text.remove_prefix(c.size > 0 ? c.size : 1);
  }
  return out;
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) append_character(out, c);
  return out;
}

bool is_blank(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

bool is_letter(char32_t c) {
  if (c < 0x80) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  if (c < 0xc0)
    return c == 0xaa || c == 0xb2 || c == 0xb3 || c == 0xb5 || c == 0xb9 || c == 0xba ||
           (c >= 0xbc && c <= 0xbe);
  const bool sign = c == 0xd7 || c == 0xf7 || (c >= 0x2000 && c <= 0x206f) ||
                    (c >= 0x20a0 && c <= 0x20cf) || (c >= 0x2190 && c <= 0x245f) ||
                    (c >= 0x2500 && c <= 0x2bff) || (c >= 0x2e00 && c <= 0x2e7f) ||
                    (c >= 0x3000 && c <= 0x3004) || (c >= 0x3008 && c <= 0x3020) ||
                    (c >= 0xfe10 && c <= 0xfe6f) || (c >= 0xff01 && c <= 0xff0f) ||
                    (c >= 0xff1a && c <= 0xff20) || (c >= 0xff3b && c <= 0xff40 && c != 0xff3f) ||
                    (c >= 0xff5b && c <= 0xff65) || c == 0xfffd || (c >= 0x1f000 && c <= 0x1faff);
  return !sign;
}

char32_t to_lower(char32_t c) {
  if (c >= 'A' && c <= 'Z') return c + 32;
  if (c >= 0xc0 && c <= 0xde && c != 0xd7) return c + 32;
  const bool even_pairs = (c >= 0x100 && c <= 0x137 && c != 0x130) || (c >= 0x14a && c <= 0x177) ||
                          (c >= 0x1e00 && c <= 0x1e95) || (c >= 0x460 && c <= 0x481);
  if (even_pairs) return c | 1;
  const bool odd_pairs = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e);
  if (odd_pairs) return c + (c & 1);
  if ((c >= 0x391 && c <= 0x3a9 && c != 0x3a2) || (c >= 0x410 && c <= 0x42f)) return c + 32;
  if (c >= 0x400 && c <= 0x40f) return c + 80;
  return c;
}

std::u32string lower(std::u32string text) {
  std::transform(text.begin(), text.end(), text.begin(), to_lower);
  return text;
}

std::u32string upper(std::u32string text) {
  for (char32_t& c : text) {
    if (c >= 'a' && c <= 'z') {
      c -= 32;
    } else if (c >= 0x80) {
      // The upper case of a letter is the character whose lower case it is.
      for (const char32_t capital : {c - 32, c - 1, c - 80}) {
        if (capital != c && to_lower(capital) == c) {
          c = capital;
          break;
        }
      }
    }
  }
  return text;
}

std::u32string_view stripped(std::u32string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::u32string> split_blanks(std::u32string_view text) {
  std::vector<std::u32string> words;
  bool inside = false;
  for (const char32_t c : text) {
    if (is_blank(c)) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    words.back().push_back(c);
    inside = true;
  }
  return words;
}

std::u32string blanked(std::u32string text, const std::vector<std::u32string_view>& parts) {
  for (const std::u32string_view part : parts) {
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) {
      text.replace(at, part.size(), 1, U' ');
    }
  }
  return text;
}

}  // namespace mrrope::eval
