// SPDX-License-Identifier: Apache-2.0
// What the routes do, without HTTP: from bodies to jobs and JSON. All of it may be called from any
// thread; what fails throws ApiError or Error.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/chat/chat.h"
#include "model/timeline_model.h"
#include "serve/api/format.h"
#include "serve/api/request.h"
#include "serve/schedule/scheduler.h"
#include "serve/settings.h"

namespace mrrope::serve {

struct Service {
  TimelineModel& model;
  const Ladder ladder;
  engine::ChatRenderer& renderer;
  const ServerSettings settings;
  const std::optional<ChatTemplate> chat;
  const std::string chat_trouble;  // empty, or why the model's chat template cannot be used
  const BodyLimits limits;
};

// Applies the model's chat template once, to find out whether it can be used.
Service make_service(TimelineModel& model, const Ladder& ladder, engine::ChatRenderer& renderer,
                     const ServerSettings& settings);

// Any number of threads may parse bodies, but only a few at a time: a body of numbers takes eight
// times its size while it is being read.
CompletionRequest parse_request(const Service& service, std::string_view body, bool chat);

// The job that a request asks for. give_up is called while a long prompt is being tokenized; where
// it returns true, ApiError (499) is thrown. seed: for a request that gives none.
Job job_of(const Service& service, const CompletionRequest& request, std::uint32_t seed,
           const std::function<bool()>& give_up);

AnswerFormat format_of(const Service& service, const CompletionRequest& request,
                       std::uint64_t number);

// nullopt if the answer succeeded.
std::optional<ApiError> failure_of(const Service& service, const Outcome& outcome);

ordered_json tokenize_reply(const Service& service, std::string_view body,
                            const std::function<bool()>& give_up);
ordered_json detokenize_reply(const Service& service, std::string_view body);
ordered_json props_reply(const Service& service);
ordered_json models_reply(const Service& service);

}  // namespace mrrope::serve
