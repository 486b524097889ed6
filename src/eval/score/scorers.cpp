// SPDX-License-Identifier: Apache-2.0
#include "eval/score/scorers.h"

#include <algorithm>

#include "base/text.h"
#include "eval/text/unicode.h"
#include "mrrope/error.h"

namespace mrrope {

using nlohmann::ordered_json;

namespace {

// RULER reads control characters as line ends, at both ends of an answer too.
std::u32string ruler_text(std::string_view text) {
  std::u32string characters = to_characters(text);
  for (char32_t& c : characters) {
    if (c < 0x20) c = '\n';
  }
  return lower(std::u32string(stripped(characters)));
}

std::size_t matches(const std::vector<std::string>& expected, std::string_view text) {
  const std::u32string said = ruler_text(text);
  return std::size_t(std::count_if(expected.begin(), expected.end(), [&](const std::string& e) {
    return said.find(lower(to_characters(e))) != said.npos;
  }));
}

}  // namespace

double string_match_all(const std::vector<std::string>& expected, std::string_view text) {
  return expected.empty() ? 0 : double(matches(expected, text)) / double(expected.size());
}

double string_match_part(const std::vector<std::string>& expected, std::string_view text) {
  return matches(expected, text) > 0 ? 1 : 0;
}

char longbench_letter(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != '*') plain.push_back(c);
  }
  // First in brackets, wherever that stands; only then without them.
  for (const std::string_view start : {"The correct answer is (", "The correct answer is "}) {
    const bool bracket = start.back() == '(';
    for (std::size_t at = plain.find(start); at != plain.npos; at = plain.find(start, at + 1)) {
      const std::size_t letter = at + start.size();
      if (letter >= plain.size() || plain[letter] < 'A' || plain[letter] > 'D') continue;
      if (!bracket || (letter + 1 < plain.size() && plain[letter + 1] == ')')) return plain[letter];
    }
  }
  return 0;
}

std::vector<Score> grade(const std::string& scorer, const ordered_json& record) {
  const auto text = record.at("text").get<std::string>();
  const auto expected = record.at("expected").get<std::vector<std::string>>();
  if (scorer == "string_match_all") return {{scorer, string_match_all(expected, text)}};
  if (scorer == "string_match_part") return {{scorer, string_match_part(expected, text)}};
  if (scorer == "longbench-v2") {
    const char letter = longbench_letter(text);
    return {{"accuracy", !expected.empty() && expected[0] == std::string(1, letter) ? 1.0 : 0.0}};
  }
  if (scorer == "letter") {
    return {{"accuracy", !expected.empty() && expected[0] == text ? 1.0 : 0.0}};
  }
  constexpr std::string_view kInfinite = "infinitebench/";
  if (scorer.compare(0, kInfinite.size(), kInfinite) == 0) {
    const std::string task = scorer.substr(kInfinite.size());
    const ordered_json& answer = record.at("answer");
    return {{"official", infinitebench_official(task, answer, text)},
            {"lenient", infinitebench_lenient(task, answer, text)}};
  }
  throw Error(ErrorKind::corrupt, cat("there is no scorer '", scorer, "'"),
              "this run was made by another version of mrrope");
}

bool decided(const std::string& scorer, const std::vector<std::string>& expected,
             std::string_view text) {
  if (scorer == "string_match_all") return string_match_all(expected, text) == 1;
  return scorer == "string_match_part" && string_match_part(expected, text) == 1;
}

}  // namespace mrrope
