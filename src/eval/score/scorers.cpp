// SPDX-License-Identifier: Apache-2.0
#include "eval/score/scorers.h"

#include <algorithm>

#include "base/files/source.h"
#include "base/text.h"
#include "eval/text/unicode.h"
#include "mrrope/error.h"

namespace mrrope::eval {

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

void unknown_scorer(const std::string& name) {
  throw Error(ErrorKind::corrupt, cat("there is no scorer ", shown(name)),
              "this run was made by another version of mrrope");
}

}  // namespace mrrope::eval
