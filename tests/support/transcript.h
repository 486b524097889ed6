// SPDX-License-Identifier: Apache-2.0
// What a function answers, as a transcript: tests/transcripts/unit/NAME.txt has inputs after "$ "
// and below each exactly what `answer` returns. With MRROPE_UPDATE_TRANSCRIPTS in the environment
// the file is written anew: read the difference.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>

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
    const std::string wanted = answer(input.substr(2)) + "\n";
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

}  // namespace mrrope::test
