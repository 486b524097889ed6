// SPDX-License-Identifier: Apache-2.0
// What a benchmark asks: prompts with the answers they should get. A benchmark only makes sample
// sets and names a scorer for each; running, journals, resuming and tables are the same for all
// (sample_run.h, sample_results.h).
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/timeline_model.h"

namespace mrrope {

struct Sample {
  std::string id;                     // unique within its set
  std::string text;                   // the final prompt, for people
  std::vector<Token> prompt;          // what is sent: its tokens, with the one BOS
  std::vector<std::string> expected;  // how they count is the scorer's business
  // Goes into the journal line as it is: what else grading and tables need.
  nlohmann::ordered_json more = nlohmann::ordered_json::object();
};

// Samples of one task at one length. They are made when needed: a set may be larger than memory.
struct SampleSet {
  std::string task;         // "ruler/niah_single_1"
  std::int64_t length = 0;  // prompt and room for the answer take no more tokens than this
  std::string scorer;       // grade()
  int answer_tokens = 0;
  std::size_t count = 0;
  // Sample 0 .. count - 1: a pure function of the index.
  std::function<Sample(std::size_t)> make;
  // Where set, nothing is generated: the answer is the letter A, B, ... whose tokens hold the
  // largest logit after the prompt.
  std::vector<std::vector<Token>> letters;
};

// All that one run asks.
struct SampleSuite {
  std::string task;                 // "ruler"
  nlohmann::ordered_json settings;  // its share of run.json: all that the samples depend on
  std::vector<SampleSet> sets;
};

}  // namespace mrrope
