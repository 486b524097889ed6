// SPDX-License-Identifier: Apache-2.0
// The rules of InfiniteBench's compute_scores.py (OpenBMB/InfiniteBench, 88b3daa), and a lenient
// version of each.
#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/words.h"
#include "eval/score/answer_text.h"
#include "eval/tasks/infinitebench/infinitebench.h"

namespace mrrope::eval {

namespace {

using Text = std::u32string;

bool digit(char32_t c) { return c >= '0' && c <= '9'; }

std::vector<std::string> texts(const ordered_json& answer) {
  if (!answer.is_array()) return {answer.is_string() ? answer.get<std::string>() : answer.dump()};
  return mapped(answer, [](const ordered_json& a) { return texts(a).front(); });
}

std::string first(const std::vector<std::string>& list) { return list.empty() ? "" : list[0]; }

std::vector<std::string> digit_runs(std::string text) {
  for (char& c : text) c = c >= '0' && c <= '9' ? c : ' ';
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

Text without_double_blanks(Text text) {
  for (std::size_t at = text.find(U"  "); at != text.npos; at = text.find(U"  ", at)) {
    text.erase(at, 1);
  }
  return text;
}

std::vector<Text> retrieval_words(const std::string& text) {
  return split_blanks(
      blanked(to_characters(text), {U"\n", U":", U"\"", U"'", U".", U",", U"?", U"!", U"{", U"}"}));
}

// What follows the first of these phrases (and one character more), searched in their order.
std::optional<Text> after_phrase(const Text& text, const std::vector<Text>& phrases) {
  for (const Text& phrase : phrases) {
    const std::size_t at = text.find(phrase);
    if (at != text.npos) return text.substr(std::min(text.size(), at + phrase.size() + 1));
  }
  return std::nullopt;
}

bool starts_with_one(const Text& text, const std::vector<std::string>& list) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& s) {
    return text.compare(0, to_characters(s).size(), to_characters(s)) == 0;
  });
}

bool code_debug(const std::vector<std::string>& label, const std::string& said) {
  if (label.size() < 2) return false;
  Text text(stripped(to_characters(said)));
  const Text letter = to_characters(label[1]);
  if (text.substr(0, 2) == letter + U"." || text.substr(0, 2) == letter + U":") return true;
  text = without_double_blanks(
      blanked(text, {U"\n", U"`", U"'", U"\"", U"-", U"*", U"Option", U"option"}));
  const auto rest = after_phrase(text, {U"answer is:", U"is:", U"answer:", U"correct option is:"});
  return rest && starts_with_one(*rest, {label[1], label[0]});
}

bool book_choice(const std::vector<std::string>& label, const std::string& said) {
  Text text(stripped(to_characters(said)));
  if (text.empty()) return false;
  const auto among = [&](const Text& what) { return has(label, to_utf8(what)); };
  const Text letters = U"ABCD";
  if (letters.find(text[0]) != letters.npos) return among(text.substr(0, 1));
  if (among(text)) return true;
  text = without_double_blanks(
      blanked(text, {U"\n", U"\"", U"'", U".", U",", U"?", U"!", U"{", U"}"}));
  const auto rest = after_phrase(text, {U"answer is:", U"answer:", U"answer is", U"option is"});
  if (rest) return starts_with_one(*rest, label);
  for (const Text& word : split_blanks(text)) {
    if (letters.find(word) != letters.npos) return among(word);
  }
  return false;
}

// The first "12.5" or "12" of a text.
std::string first_number(const std::string& text) {
  constexpr const char* kDigits = "0123456789";
  const std::size_t at = std::min(text.find_first_of(kDigits), text.size());
  std::size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
  if (end + 1 < text.size() && text[end] == '.' && digit(char32_t(text[end + 1]))) {
    end = std::min(text.find_first_not_of(kDigits, end + 1), text.size());
  }
  return text.substr(at, end - at);
}

bool math_find(const ordered_json& answer, const std::string& said, bool lenient) {
  const ordered_json& label = answer.is_array() ? answer.at(0) : answer;
  const std::string found = first_number(said);
  if (found.empty()) return false;
  const std::string gold = label.is_string() ? label.get<std::string>() : label.dump();
  const bool whole = gold.find_first_of(".eE") == std::string::npos;
  // Python's int() takes no point; the original stops with an error there.
  if (whole && !lenient && found.find('.') != std::string::npos) return false;
  return std::strtod(found.c_str(), nullptr) == std::strtod(gold.c_str(), nullptr);
}

// A whole text as Python's int() reads it.
std::optional<std::string> whole_number(std::string text) {
  if (text.empty()) return std::nullopt;
  const bool negative = text[0] == '-';
  if (text[0] == '-' || text[0] == '+') text.erase(0, 1);
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      if (i == 0 || i + 1 == text.size() || text[i - 1] == '_') return std::nullopt;
      continue;
    }
    if (!digit(char32_t(static_cast<unsigned char>(text[i])))) return std::nullopt;
    digits.push_back(text[i]);
  }
  if (digits.empty()) return std::nullopt;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  return (negative && digits != "0" ? "-" : "") + digits;
}

bool code_run(const std::string& gold, const std::string& said, bool lenient) {
  const std::vector<Text> words =
      split_blanks(blanked(to_characters(said), {U"\n", U".", U"`", U"'", U"\"", U":"}));
  const auto wanted = whole_number(gold);
  if (words.empty() || !wanted) return false;
  if (!lenient) return whole_number(to_utf8(words.back())) == wanted;
  return std::any_of(words.begin(), words.end(), [&](const Text& word) {
    std::string plain = to_utf8(word);
    const auto odd = [](char c) {
      return c != '-' && !digit(char32_t(static_cast<unsigned char>(c)));
    };
    while (!plain.empty() && odd(plain.back())) plain.pop_back();
    while (!plain.empty() && odd(plain.front())) plain.erase(0, 1);
    return whole_number(plain) == wanted;
  });
}

// As SQuAD does: lower case, no punctuation, no articles.
std::vector<Text> normal_words(const std::string& text) {
  Text plain;
  for (const char32_t c : lower(to_characters(text))) {
    const bool punctuation = c < 0x7f && c > 0x20 && (!is_letter(c) || c == '_');
    if (!punctuation) plain.push_back(c);
  }
  // \b(a|an|the)\b
  Text kept;
  for (std::size_t i = 0; i < plain.size();) {
    if (!is_letter(plain[i])) {
      kept.push_back(plain[i++]);
      continue;
    }
    std::size_t end = i;
    while (end < plain.size() && is_letter(plain[end])) ++end;
    const Text word = plain.substr(i, end - i);
    kept += word == U"a" || word == U"an" || word == U"the" ? Text(U" ") : word;
    i = end;
  }
  return split_blanks(kept);
}

std::vector<Text> normal_characters(const std::string& text) {
  constexpr char32_t kPunctuation[][2] = {
      {0x2013, 0x2014}, {0x2018, 0x2019}, {0x201b, 0x201f}, {0x2026, 0x2027}, {0x3001, 0x3003},
      {0x300b, 0x3011}, {0x3014, 0x301f}, {0x3030, 0x3030}, {0x303e, 0x303f}, {0xfe4f, 0xfe4f},
      {0xff01, 0xff0d}, {0xff0f, 0xff0f}, {0xff1a, 0xff20}, {0xff3b, 0xff40}, {0xff5b, 0xff64}};
  std::vector<Text> list;
  for (const char32_t c : lower(to_characters(text))) {
    const bool ascii = c < 0x80 && c > 0x20 && c != 0x7f && (!is_letter(c) || c == '_');
    const bool other = std::any_of(std::begin(kPunctuation), std::end(kPunctuation),
                                   [&](const auto& r) { return c >= r[0] && c <= r[1]; });
    if (!ascii && !other && !is_blank(c)) list.emplace_back(1, c);
  }
  return list;
}

using Normal = std::vector<Text> (*)(const std::string&);

double best_f1(const std::vector<std::string>& golds, const std::string& said, Normal normal) {
  const std::vector<Text> words = normal(said);
  double best = 0;
  for (const std::string& gold : golds) {
    const std::vector<Text> wanted = normal(gold);
    best = std::max(best, f1(in_common(words, wanted), wanted.size(), words.size()));
  }
  return best;
}

bool contains_one(const std::vector<std::string>& golds, const std::string& said, Normal normal) {
  const std::vector<Text> text = normal(said);
  return std::any_of(golds.begin(), golds.end(), [&](const std::string& gold) {
    const std::vector<Text> part = normal(gold);
    return !part.empty() &&
           std::search(text.begin(), text.end(), part.begin(), part.end()) != text.end();
  });
}

double right_start(const ordered_json& answer, const std::string& said) {
  const ordered_json& label =
      answer.is_array() && !answer.empty() && answer[0].is_array() ? answer[0] : answer;
  if (!label.is_array() || label.empty()) return 0;
  const std::vector<std::string> runs = digit_runs(said);
  std::size_t right = 0;
  while (right < label.size() && right < runs.size()) {
    const auto wanted = whole_number(first(texts(label[right])));
    if (!wanted || whole_number(runs[right]) != wanted) break;
    ++right;
  }
  return double(right) / double(label.size());
}

bool contains_lower(const std::string& text, const std::string& part) {
  return lower(to_characters(text)).find(lower(to_characters(part))) != Text::npos;
}

// The first of the letters A to D that is a word of its own.
std::optional<char> lone_letter(const std::string& said) {
  const Text text = to_characters(said);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool before = i == 0 || !is_letter(text[i - 1]);
    const bool after = i + 1 == text.size() || !is_letter(text[i + 1]);
    if (text[i] >= 'A' && text[i] <= 'D' && before && after) return char(text[i]);
  }
  return std::nullopt;
}

bool option_named(const std::vector<std::string>& label, const std::string& said) {
  if (label.size() < 2) return false;
  if (const auto letter = lone_letter(said)) return label[1] == std::string(1, *letter);
  return contains_lower(said, label[0]);
}

std::vector<Score> scores(double official, double lenient) {
  return {{"official", official}, {"lenient", lenient}};
}

std::vector<Score> grade(const std::string& scorer, const ordered_json& record) {
  const std::string task = scorer.substr(scorer.find('/') + 1);
  const auto text = record.at("text").get<std::string>();
  const ordered_json& answer = record.at("answer");
  const std::vector<std::string> golds = texts(answer);
  const std::string gold = first(golds);
  if (scorer != "infinitebench/" + task) unknown_scorer(scorer);
  if (task == "passkey" || task == "number_string") {
    const std::vector<std::string> runs = digit_runs(text);
    const auto at = std::find(runs.begin(), runs.end(), gold);
    return scores(at != runs.end() && at == runs.begin(), at != runs.end());
  }
  if (task == "kv_retrieval") {
    return scores(has(retrieval_words(text), to_characters(gold)), contains_lower(text, gold));
  }
  if (task == "longdialogue_qa_eng") {
    std::vector<Text> words = retrieval_words(text);
    for (Text& word : words) word = upper(word);
    return scores(has(words, to_characters(gold)), contains_one(golds, text, normal_words));
  }
  if (task == "math_find") {
    return scores(math_find(answer, text, false), math_find(answer, text, true));
  }
  if (task == "math_calc") {
    const double right = right_start(answer, text);
    return scores(right, right);
  }
  if (task == "code_run") return scores(code_run(gold, text, false), code_run(gold, text, true));
  if (task == "code_debug") return scores(code_debug(golds, text), option_named(golds, text));
  if (task == "longbook_choice_eng") {
    return scores(book_choice(golds, text), option_named(golds, text));
  }
  if (task == "longbook_qa_eng" || task == "longbook_qa_chn") {
    const Normal normal = task == "longbook_qa_eng" ? normal_words : normal_characters;
    return scores(best_f1(golds, text, normal), contains_one(golds, text, normal));
  }
  if (task == "longbook_sum_eng") {
    double best = 0;
    for (const std::string& one : golds) best = std::max(best, rouge_lsum(one, text));
    return scores(best, best);
  }
  unknown_scorer(scorer);
}

}  // namespace

const SampleRules& infinitebench_rules() {
  static const SampleRules rules{.grade = grade};
  return rules;
}

}  // namespace mrrope::eval
