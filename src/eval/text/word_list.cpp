// SPDX-License-Identifier: Apache-2.0
#include "eval/text/word_list.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace mrrope::eval {

namespace {

const std::string& pick(const char* list, Random& random) {
  const std::vector<std::string>& words = word_list(list);
  return words[random.below(words.size())];
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = char(text[0] - 'a' + 'A');
  return text;
}

// "a" becomes "an" where it has to.
void add_word(const std::string& word, std::string& out) {
  const bool vowel = std::string_view("aeiou").find(word[0]) != std::string_view::npos;
  if (vowel && (out.ends_with(" a ") || out == "a ")) out.insert(out.size() - 1, "n");
  out += word;
}

void expand(std::string_view pattern, Random& random, std::string& out) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out.push_back(pattern[i]);
      continue;
    }
    const char kind = pattern[++i];
    const std::string& text = pick(kind == 'a'   ? "adjectives"
                                   : kind == 'n' ? "nouns"
                                   : kind == 'T' ? "times"
                                   : kind == 'd' ? "deeds"
                                                 : "people",
                                   random);
    if (kind == 'd') {
      expand(text, random, out);
    } else if (kind == 'a' || kind == 'n') {
      add_word(text, out);
    } else {
      out += kind == 'P' ? capital(text) : text;
    }
  }
}

}  // namespace

const std::vector<std::string>& word_list(std::string_view name) {
  static const auto lists =
      nlohmann::json::parse(embedded::words_json)
          .get<std::map<std::string, std::vector<std::string>, std::less<>>>();
  return lists.find(name)->second;
}

Random random_for(std::uint64_t seed, std::string_view what, std::uint64_t a, std::uint64_t b,
                  std::uint64_t c) {
  std::uint64_t state = Random(seed).next();
  for (const char ch : what) state = Random(state + std::uint64_t(std::uint8_t(ch))).next();
  for (const std::uint64_t value : {a, b, c}) state = Random(state + value).next();
  return Random(state);
}

std::vector<std::size_t> choose(std::size_t n, std::size_t count, Random& random) {
  // Floyd's: one draw for each of the chosen.
  std::set<std::size_t> chosen;
  for (std::size_t i = n - count; i < n; ++i) {
    const std::size_t at = random.below(i + 1);
    chosen.insert(chosen.count(at) > 0 ? i : at);
  }
  return {chosen.begin(), chosen.end()};
}

std::string random_key(Random& random) {
  return pick("adjectives", random) + "-" + pick("nouns", random);
}

std::string random_digits(Random& random, std::size_t n) {
  std::string digits(n, '0');
  for (std::size_t i = 0; i < n; ++i) {
    digits[i] = char(i == 0 ? '1' + random.below(9) : '0' + random.below(10));
  }
  return digits;
}

std::string random_uuid(Random& random) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string uuid(kForm);
  for (char& c : uuid) {
    if (c == 'x') c = kHex[random.below(16)];
    if (c == 'y') c = kHex[8 + random.below(4)];
  }
  return uuid;
}

std::string random_letters(Random& random, std::size_t n, char first) {
  std::string letters(n, first);
  for (char& c : letters) c = char(c + char(random.below(26)));
  return letters;
}

std::uint64_t plain_words() { return word_list("nouns").size() + word_list("adjectives").size(); }

std::string plain_word(std::uint64_t index) {
  const std::vector<std::string>& nouns = word_list("nouns");
  return index < nouns.size() ? nouns[index] : word_list("adjectives")[index - nouns.size()];
}

std::uint64_t compound_words() {
  const std::uint64_t nouns = word_list("nouns").size();
  return nouns * nouns * word_list("adjectives").size();
}

std::string compound_word(std::uint64_t index) {
  const std::vector<std::string>& nouns = word_list("nouns");
  const std::vector<std::string>& adjectives = word_list("adjectives");
  const std::uint64_t n = nouns.size();
  const std::string word = nouns[index % n] + nouns[index / n % n];
  // After all pairs of nouns an adjective in front makes more.
  const std::uint64_t more = index / n / n;
  return more == 0 ? word : adjectives[(more - 1) % adjectives.size()] + word;
}

std::string town_name(std::uint64_t index) {
  const std::vector<std::string>& syllables = word_list("syllables");
  const std::uint64_t n = syllables.size();
  // Odd and not a multiple of 3 or 7, the prime factors of n: neighbours look nothing alike.
  index = index * 52631 % (n * n * n);
  return capital(syllables[index % n] + syllables[index / n % n] + syllables[index / n / n]);
}

std::string person_name(std::uint64_t index) {
  const std::vector<std::string>& given = word_list("given_names");
  return given[index % given.size()] + " " + town_name(index + 17);
}

std::string prose_sentence(Random& random) {
  std::string out;
  expand(pick("patterns", random), random, out);
  return out;
}

}  // namespace mrrope::eval
