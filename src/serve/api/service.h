// SPDX-License-Identifier: Apache-2.0
// What the routes do, without HTTP: from bodies to jobs and JSON. All of it may be called from any
// thread; what fails throws ApiError or Error.
#pragma once

#include <functional>
#include <map>
#include <memory>
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
  const std::string chat_error;  // empty, or why the model's chat template cannot be used
  const bool has_tools;          // the template has a place for them
  const BodyLimits limits;
};

// Applies the model's chat template, to find out whether it can be used, and with tools.
Service make_service(TimelineModel& model, const Ladder& ladder, engine::ChatRenderer& renderer,
                     const ServerSettings& settings);

// Any number of threads may parse bodies, but only a few at a time: a body of numbers takes eight
// times its size while it is being read.
CompletionRequest parse_request(const Service& service, std::string_view body, Route route);

// What a request asks for each of its prompts: a job, and how its answer is read. For several
// answers the job is done as often, each with the next seed.
struct PreparedJob {
  Job job;
  AnswerSyntax syntax;
};

// give_up is called while the request waits for its template, schema or grammar, and while a long
// prompt is being tokenized; where it returns true, ApiError (499) is thrown. seed: for a request
// that gives none.
std::vector<PreparedJob> prepare_jobs(const Service& service, const CompletionRequest& request,
                                      std::uint32_t seed, const std::function<bool()>& give_up);

std::unique_ptr<AnswerFormat> format_of(const Service& service, const CompletionRequest& request,
                                        std::uint64_t number);

// nullopt if the answer succeeded.
std::optional<ApiError> failure_of(const Service& service, const Outcome& outcome);

ordered_json tokenize_reply(const Service& service, std::string_view body,
                            const std::function<bool()>& give_up);
ordered_json detokenize_reply(const Service& service, std::string_view body);
ordered_json props_reply(const Service& service);
ordered_json models_reply(const Service& service);
ordered_json apply_template_reply(const Service& service, std::string_view body,
                                  const std::function<bool()>& give_up);
ordered_json slots_reply(const Service& service, const std::vector<SlotState>& slots);

// What ollama's clients ask before they chat.
ordered_json ollama_tags_reply(const Service& service);
ordered_json ollama_show_reply(const Service& service, std::string_view body);

// llama-server's POST /slots/{id}?action=save|restore|erase. Waits until the slot writes no answer,
// unless give_up returns true before. Throws ApiError: 400 (the slot, the action, the name, or a
// file of another model or ladder), 404 (no such file), 501 (there is no folder for them).
ordered_json slot_action_reply(const Service& service, Scheduler& scheduler,
                               const std::string& slot, const std::string& action,
                               std::string_view body, const std::function<bool()>& give_up);

// In Prometheus' text format. responses: how many, by status.
std::string metrics_text(const SchedulerCounts& counts,
                         const std::map<int, std::uint64_t>& responses, double uptime_seconds);

// Throws ApiError (404) unless this is the name of the model here.
void check_model(const Service& service, const std::string& name);

}  // namespace mrrope::serve
