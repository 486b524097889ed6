// SPDX-License-Identifier: Apache-2.0
// The texts of a search, and what it minimizes on them.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/results/result_table.h"
#include "eval/tasks/needle/needle.h"
#include "eval/text/documents.h"
#include "model/timeline_model.h"

namespace mrrope::tune {

struct PlantedAnswer {
  double depth = 0;             // of its needle, from 0 to 1
  std::vector<Token> question;  // with the answer at its end
  std::size_t answer = 0;       // tokens of the answer
};

struct SearchText {
  std::string id;
  std::int64_t length = 0;    // tokens, with room for the longest question
  std::vector<Token> tokens;  // head and document with its needles
  std::vector<char> planted;  // of each token: part of a needle, or of the head
  std::vector<PlantedAnswer> asked;
  std::int64_t cost = 0;  // tokens to compute
};

struct Planting {
  std::size_t answers = 10;
  // Needles that are never asked for, per answer: a plan must tell the keys apart, not only find
  // one. They take at most an eighth of the text.
  std::size_t decoys = 3;
};

// document: at least `length` tokens without BOS. The words and numbers are drawn by (seed,
// number). Throws Error (usage) if `length` is too short for the answers.
SearchText plant(const Tokenizer& model, const eval::NeedleForm& form, const std::string& id,
                 const std::vector<Token>& document, std::int64_t length, const Planting& planting,
                 std::uint64_t seed, std::size_t number);

// The documents that the search sees and those that it never does, drawn by the seed before
// anything starts.
struct Split {
  std::vector<eval::Document> search;
  std::vector<eval::Document> held_out;
};

// At most `most` for the search, at most half of them; the rest is held out, at most
// `most_held_out` (0: all). Throws Error (usage) if there are fewer than one and two: a paired
// error needs two documents.
Split split_documents(const Tokenizer& model, const std::vector<eval::Document>& documents,
                      std::int64_t tokens, std::size_t most, std::size_t most_held_out,
                      std::uint64_t seed);

// A ladder on one text.
struct Measured {
  std::vector<double> bands;    // loss per token of each band, natural logarithm
  std::vector<double> answers;  // log-probability per token of each planted answer
  std::string failed;           // why there are no numbers; empty: there are some

  double log_perplexity() const;  // mean of the bands
  double retrieval() const;       // mean of the answers
  // Infinite where it failed.
  double objective(double weight) const;
};

// The model must have no timeline. Numbers that are not finite, and NanLogits, are data: `failed`
// says so. `between` is called with the tokens just computed.
Measured measure(TimelineModel& model, const Ladder& ladder, const SearchText& text,
                 std::int64_t batch, const std::function<void(std::int64_t)>& between);

nlohmann::ordered_json to_json(const Measured& measured);
// May throw Error (corrupt) or an exception of the JSON library.
Measured measured_from_json(const nlohmann::ordered_json& line);

}  // namespace mrrope::tune
