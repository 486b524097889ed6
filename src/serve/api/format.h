// SPDX-License-Identifier: Apache-2.0
// Answers in OpenAI's JSON shapes. What OpenAI does not have is under "mrrope"; rungs count from 0
// there, as everywhere in JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "serve/api/request.h"
#include "serve/schedule/scheduler.h"

namespace mrrope::serve {

using ordered_json = nlohmann::ordered_json;

// Bytes that are not UTF-8 become U+FFFD.
std::string to_text(const ordered_json& value);

ordered_json error_json(const ApiError& error);

// The answer to one request in one of four shapes: completion or chat, whole or in chunks.
class AnswerFormat {
 public:
  AnswerFormat(const TimelineModel& model, const Ladder& ladder, const CompletionRequest& request,
               std::string id, std::string model_name, std::int64_t created);

  // The first chunk of a stream: a chat names its role.
  ordered_json opening() const;
  ordered_json chunk(const Answer::Part& part);
  // Progress of reading a long prompt: tokens, rate and time left.
  ordered_json prefill(const Answer::Part& part) const;
  // The last chunk says why the answer ended; one more has the usage, if the request asked for it.
  ordered_json closing(const Outcome& outcome) const;
  ordered_json usage_chunk(const Outcome& outcome) const;
  ordered_json whole(const std::string& text, const std::vector<ChosenToken>& tokens,
                     const Outcome& outcome);

 private:
  ordered_json head(const char* kind) const;
  ordered_json logprobs(const std::vector<ChosenToken>& tokens);
  ordered_json place(std::size_t rung, std::int64_t length) const;
  ordered_json about(const Outcome& outcome) const;

  const TimelineModel& model_;
  const Ladder& ladder_;
  bool chat_;
  bool logprobs_;
  std::vector<std::string> ignored_;
  std::string id_;
  std::string name_;
  std::int64_t created_;
  std::size_t offset_ = 0;  // bytes of tokens listed so far
};

ordered_json usage_json(const Outcome& outcome);

// For the log: "reading a prompt: 4096 of 20000 tokens, 512 tokens/s, 31 s left, rung 2 of 9".
std::string prefill_text(const Prefill& prefill, std::size_t rungs);

// "stop" or "length".
const char* finish_reason(const Outcome& outcome);

}  // namespace mrrope::serve
