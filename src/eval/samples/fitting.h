// SPDX-License-Identifier: Apache-2.0
// Samples fitted to a length. A drafter writes a prompt of a given number of units (words, lines,
// documents). The largest number is used for which the whole prompt, including template and BOS,
// and the answer fit into N tokens. A sample that is longer than the one that was tried loses as
// many units as necessary. A prompt that was read from a file is cut in the middle instead.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "eval/samples/prompts.h"
#include "eval/samples/sample.h"

namespace mrrope::eval {

struct Draft {
  std::string body;
  std::string prefix;
  std::vector<std::string> expected;
  nlohmann::ordered_json more = nlohmann::ordered_json::object();
  std::string id{};  // of a draft that was read
};

struct Drafter {
  std::int64_t min = 1;    // the fewest with which the task works
  std::int64_t grain = 1;  // units are min + k * grain
  std::int64_t max = INT64_MAX;
  std::size_t questions = 1;  // so many consecutive drafts ask about one text
  // A pure function. More units give a longer text. Drafts about one text get equal numbers.
  std::function<Draft(std::int64_t units, std::size_t index, Random& random)> draft;
};

// The set with samples of a drafter, whose random numbers depend on the seed, the task and the
// length. Throws Error (usage) that names the smallest possible length if the set's is below it.
// The fit is found when the first sample is made. The frame and the counter must outlive the set.
SampleSet fitted_set(SampleSet set, std::uint64_t seed, Drafter drafter, const PromptFrame& frame,
                     TokenCounter& counter);

// The set with `count` of these drafts (0, or more than there are: all), chosen at random. A longer
// one keeps the first and the last part of its body, half of the room each; template, prefix and
// BOS are kept, and it is marked. As in the original benchmarks, the halves are turned into text,
// which is tokenized again. ids: of those chosen. The frame must outlive the set.
SampleSet cut_set(SampleSet set, std::vector<Draft> drafts, std::size_t count, Random random,
                  const PromptFrame& frame, nlohmann::ordered_json& ids);

}  // namespace mrrope::eval
