// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/longbench/longbench.h"

namespace mrrope::eval {

using nlohmann::ordered_json;

namespace {

constexpr const char* kReply = "longbench-v2";  // the letter is read from a reply
constexpr const char* kLetter = "letter";       // the letter was chosen by its logit

std::vector<Score> grade(const std::string& scorer, const ordered_json& record) {
  const auto text = record.at("text").get<std::string>();
  const auto expected = record.at("expected").get<std::vector<std::string>>();
  if (scorer != kReply && scorer != kLetter) unknown_scorer(scorer);
  const std::string said = scorer == kLetter ? text : std::string(1, longbench_letter(text));
  return {{"accuracy", !expected.empty() && expected[0] == said ? 1.0 : 0.0}};
}

bool unanswered(const std::string& scorer, std::string_view text) {
  return scorer == kReply && longbench_letter(text) == 0;
}

}  // namespace

char longbench_letter(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != '*') plain.push_back(c);
  }
  // First in brackets, anywhere in the text; only then without them.
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

const SampleRules& longbench_rules() {
  static const SampleRules rules{.grade = grade, .unanswered = unanswered};
  return rules;
}

}  // namespace mrrope::eval
