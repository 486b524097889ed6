// SPDX-License-Identifier: Apache-2.0
// What a function answers, as a transcript: tests/transcripts/unit/NAME.txt has inputs after "$ "
// and below each exactly what `answer` returns, without the paths of temporary folders. With
// MRROPE_UPDATE_TRANSCRIPTS in the environment the file is written anew: read the difference.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "mrrope/error.h"
#include "support/temp_folder.h"

namespace mrrope::test {

using Answering = std::function<std::string(const std::string& input)>;

inline void expect_transcript(const std::string& name, const Answering& answer) {
  const std::string path = MRROPE_GOLDEN_DIR "/../transcripts/unit/" + name + ".txt";
  const bool update = std::getenv("MRROPE_UPDATE_TRANSCRIPTS") != nullptr;
  const std::string before = read_file(path);
  std::istringstream lines(before);
  std::string after, input, found;
  std::size_t inputs = 0;
  const auto end_of_input = [&] {
    if (input.empty()) return;
    static const std::regex folder("/[^ \"]*mrrope-test-\\w+/");
    const std::string wanted = std::regex_replace(answer(input.substr(2)), folder, "") + "\n";
    EXPECT_TRUE(update || found == wanted) << input << "\nwas\n" << found << "is\n" << wanted;
    after += input + "\n" + wanted;
    input = found = "";
    ++inputs;
  };
  for (std::string line; std::getline(lines, line);) {
    const bool comment = line.starts_with("# ");
    if (comment || line.starts_with("$ ")) end_of_input();
    if (comment) {
      after += line + "\n";
    } else if (line.starts_with("$ ")) {
      input = line;
    } else {
      found += line + "\n";
    }
  }
  end_of_input();
  EXPECT_GT(inputs, 0u) << path;
  if (update && after != before) write_file(path, after);
}

// An Error as its exit code, message and hint.
inline std::string or_error(const std::function<std::string()>& answer) {
  try {
    return answer();
  } catch (const Error& error) {
    const std::string said = "[" + std::to_string(error.exit_code()) + "] " + error.what();
    return error.hint().empty() ? said : said + "\n    " + error.hint();
  }
}

// \xNN is a byte, \n a line feed, \{N*text} N times a text.
inline std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || ++i == text.size()) {
      out += text[i < text.size() ? i : i - 1];
    } else if (text[i] == 'x') {
      out += char(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else if (text[i] == '{') {
      const std::size_t star = text.find('*', i), end = text.find('}', i);
      const int times = std::stoi(text.substr(i + 1, star - i - 1));
      for (int n = 0; n < times; ++n) out += text.substr(star + 1, end - star - 1);
      i = end;
    } else {
      out += text[i] == 'n' ? '\n' : text[i];
    }
  }
  return out;
}

inline std::string with_escapes(const std::string& text) {
  std::string out;
  for (const char c : text) {
    char code[8] = {c};
    const bool shown = c == '\n' || (c >= ' ' && c <= '~');
    if (!shown) std::snprintf(code, sizeof code, "\\x%02x", c & 0xff);
    out += code;
  }
  return out;
}

// Functions of texts, by name: an input is a name and arguments between " | ".
using Arguments = std::vector<std::string>;
using Functions = std::map<std::string, std::function<std::string(const Arguments&)>>;

inline void expect_functions(const std::string& name, const Functions& functions) {
  expect_transcript(name, [&](const std::string& input) {
    const std::size_t word = std::min(input.find(' '), input.size());
    Arguments arguments;
    for (std::string rest = input.substr(std::min(word + 1, input.size()));;) {
      const std::size_t end = rest.find(" | ");
      arguments.push_back(unescaped(rest.substr(0, end)));
      if (end == std::string::npos) break;
      rest = rest.substr(end + 3);
    }
    return or_error([&] { return with_escapes(functions.at(input.substr(0, word))(arguments)); });
  });
}

}  // namespace mrrope::test
