// SPDX-License-Identifier: Apache-2.0
// Answers in the shapes that clients expect. What the shape does not have is under "mrrope"; rungs
// count from 0 there, as everywhere in JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "serve/api/answer_reader.h"
#include "serve/api/request.h"
#include "serve/schedule/scheduler.h"

namespace mrrope::serve {

using ordered_json = nlohmann::ordered_json;

// Bytes that are not UTF-8 become U+FFFD.
std::string to_text(const ordered_json& value);

ordered_json error_json(const ApiError& error);

// One of the answers to a request, complete.
struct WholeAnswer {
  Delta said;
  std::vector<ChosenToken> tokens;
  Outcome outcome;
};

// What the answers to one request have in common.
struct AnswerFacts {
  const TimelineModel& model;
  const Ladder& ladder;
  std::string id;
  std::string model_name;
  std::int64_t created = 0;  // seconds
  std::int64_t context = 0;  // tokens of one conversation
};

// The answers to one request, whole or as a stream: opening, chunk and closing for each of them,
// then end. The functions for streams append what is to be sent.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  virtual const char* stream_type() const = 0;  // of the content
  virtual void opening(std::string& out, int index) = 0;
  virtual void chunk(std::string& out, int index, const Delta& delta, const Answer::Part& part) = 0;
  // Progress of reading the prompt: tokens, rate and time left.
  virtual void progress(std::string& out, int index, const Answer::Part& part) = 0;
  virtual void closing(std::string& out, int index, const Outcome& outcome, bool calls) = 0;
  virtual void failure(std::string& out, const ApiError& error) = 0;
  virtual void end(std::string& out, const std::vector<Outcome>& outcomes) = 0;

  virtual ordered_json whole(const std::vector<WholeAnswer>& answers) = 0;
};

// By the request's dialect. The request may be gone later.
std::unique_ptr<AnswerFormat> make_format(const AnswerFacts& facts,
                                          const CompletionRequest& request);

// The place of a conversation on its ladder.
ordered_json place_json(const Ladder& ladder, std::size_t rung, std::int64_t length);
ordered_json about_json(const Ladder& ladder, const Outcome& outcome,
                        const std::vector<std::string>& ignored);

// Prompts are counted once, answers all together: `answers` of them to each prompt.
ordered_json usage_json(const std::vector<Outcome>& outcomes, int answers);

// As llama-server reports it.
ordered_json progress_json(const Prefill& prefill);
ordered_json timings_json(const Outcome& outcome);

// For the log: "reading a prompt: 4096 of 20000 tokens, 512 tokens/s, 31 s left, rung 2 of 9".
std::string prefill_text(const Prefill& prefill, std::size_t rungs);

// "stop", "length" or "tool_calls".
const char* finish_reason(const Outcome& outcome, bool calls);

}  // namespace mrrope::serve
