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

ordered_json error_json(const ApiError& error);

// One of the answers to a request, complete.
struct Completion {
  Delta delta;
  std::vector<ChosenToken> tokens;
  Outcome outcome;
};

// Every token whose logit a request changes.
std::vector<std::pair<Token, float>> token_biases(const TimelineModel& model,
                                                  const CompletionRequest& request);

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
  // The request may be gone later.
  AnswerFormat(const AnswerFacts& facts, const CompletionRequest& request);
  virtual ~AnswerFormat() = default;

  virtual const char* stream_type() const { return "text/event-stream"; }  // of the content
  virtual void opening(std::string&, int /*index*/) {}
  virtual void chunk(std::string& out, int index, const Delta& delta, const Answer::Part& part) = 0;
  // Progress of reading the prompt: tokens, rate and time left.
  virtual void progress(std::string& out, int index, const Answer::Part& part) = 0;
  virtual void closing(std::string& out, int index, const Outcome& outcome, bool calls) = 0;
  virtual void failure(std::string& out, const ApiError& error) = 0;
  virtual void end(std::string&, const std::vector<Outcome>&) {}

  virtual ordered_json whole(const std::vector<Completion>& answers) = 0;

 protected:
  static void event(std::string& out, const ordered_json& data);
  // What the shape does not have.
  ordered_json about(const Outcome& outcome) const;
  // Tokens with their log-probabilities and those of the most likely ones.
  ordered_json token_list(const std::vector<ChosenToken>& tokens, bool with_ids) const;

  const AnswerFacts facts_;
  const bool logprobs_, progress_;

 private:
  const std::vector<std::string> ignored_;
};

std::unique_ptr<AnswerFormat> make_format(const AnswerFacts& facts,
                                          const CompletionRequest& request);
// Those of each dialect.
std::unique_ptr<AnswerFormat> make_openai_format(const AnswerFacts&, const CompletionRequest&);
std::unique_ptr<AnswerFormat> make_llama_format(const AnswerFacts&, const CompletionRequest&);
std::unique_ptr<AnswerFormat> make_responses_format(const AnswerFacts&, const CompletionRequest&);
std::unique_ptr<AnswerFormat> make_ollama_format(const AnswerFacts&, const CompletionRequest&);

// The place of a conversation on its ladder.
ordered_json place_json(const Ladder& ladder, std::size_t rung, std::int64_t length);
ordered_json prefill_json(const Prefill& prefill);

// Prompts are counted once, answers all together: `answers` of them to each prompt.
ordered_json usage_json(const std::vector<Outcome>& outcomes, int answers);

// The bytes of a text, which need not be UTF-8.
ordered_json bytes_json(const std::string& text);

// As llama-server reports it.
ordered_json progress_json(const Prefill& prefill);
ordered_json timings_json(const Outcome& outcome);

// For the log: "reading a prompt: 4096 of 20000 tokens, 512 tokens/s, 31 s left, rung 2 of 9".
std::string prefill_text(const Prefill& prefill, std::size_t rungs);

// "stop", "length" or "tool_calls".
const char* finish_reason(const Outcome& outcome, bool calls);

}  // namespace mrrope::serve
