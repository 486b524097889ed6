// SPDX-License-Identifier: Apache-2.0
// Samples fitted to a length: a drafter writes a prompt of a given number of units (words, lines,
// documents). The largest number is used for which the whole prompt, including template and BOS,
// and the answer fit into N tokens. A sample that is longer than the one that was tried loses as
// many units as necessary.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eval/samples/prompt_frame.h"
#include "eval/samples/sample.h"
#include "eval/samples/token_counter.h"

namespace mrrope::eval {

struct Draft {
  std::string body;
  std::string prefix;
  std::vector<std::string> expected;
  nlohmann::ordered_json more = nlohmann::ordered_json::object();
};

struct Drafter {
  std::int64_t min = 1;    // the fewest with which the task works
  std::int64_t grain = 1;  // units are least + k * grain
  std::int64_t max = INT64_MAX;
  std::size_t questions = 1;  // so many consecutive drafts ask about one text
  // A pure function. More units give a longer text.
  std::function<Draft(std::int64_t units, std::size_t index)> draft;
};

// Throws Error (usage) that names the smallest possible length if `length` is below it. The fit is
// found when the first sample is made. The frame and the counter must outlive the set.
SampleSet fitted_set(const std::string& task, std::int64_t length, int answer_tokens,
                     const std::string& scorer, std::size_t count, Drafter drafter,
                     const PromptFrame& frame, TokenCounter& counter);

}  // namespace mrrope::eval
