// SPDX-License-Identifier: Apache-2.0
// LongBench-v2: 503 questions with four choices about long documents. Two ways to answer:
//   generate  as in THUDM/LongBench (2e00731): the letter is read from the model's reply; no letter
//             counts as wrong
//   letters   as the authors of MrRoPE do: one prefill, the largest logit of the four letters
// Results by domain (the paper's columns), by difficulty and by length class.
#pragma once

#include "eval/samples/prompts.h"

namespace mrrope::eval {

struct LongbenchOptions {
  std::string mode = "generate";  // or "letters"
  std::int64_t length = 0;        // prompt and answer take no more tokens
  bool truncate = false;          // cut longer items in the middle; otherwise drop and count them
  std::size_t samples = 0;        // chosen at random from those that are left; 0: all
  std::uint64_t seed = 1;
  Prompts prompts = builtin_prompts();
};

// data.json: a list of items, or one item per line where the name ends in .jsonl. `notes` says what
// was dropped. Throws Error: usage, failed, corrupt (with the item named). The frame must outlive
// the suite.
SampleSuite read_longbench(const PromptFrame& frame, const std::filesystem::path& file,
                           const LongbenchOptions& options, std::vector<std::string>& notes);

// The letter that an answer names, or 0.
char longbench_letter(std::string_view text);

const SampleRules& longbench_rules();

}  // namespace mrrope::eval
