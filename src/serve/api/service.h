// SPDX-License-Identifier: Apache-2.0
// What the routes do, without HTTP: from bodies to jobs and JSON. All of it may be called from any
// thread; what fails throws ApiError or Error.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/chat.h"
#include "engine/session/session.h"
#include "model/timeline_model.h"
#include "serve/api/format.h"
#include "serve/api/request.h"
#include "serve/schedule/scheduler.h"

namespace mrrope::serve {

// What a server is started with.
struct ServerSettings : SchedulerLimits {
  std::string host = "127.0.0.1";
  int port = 8080;                     // 0: any free port
  std::chrono::seconds timeout{3600};  // for one answer, including the time it waits
  std::string key;                     // empty: none is required
  std::string model_name;
  bool any_model = false;  // answers whatever model a request names
  std::string cors;        // origin of pages that may use the server; "*": all, empty: none
  std::string method;      // as the user named it
  std::filesystem::path slot_folder;  // for files of conversations; empty: none are written
  engine::SessionOwner slot_owner;    // what these belong to
};

// Called a few times per second while a request waits; true ends it.
using GiveUp = engine::ChatRenderer::GiveUp;

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
                                      std::uint32_t seed, const GiveUp& give_up);

constexpr std::chrono::milliseconds kDisconnectPoll{200};  // how often clients are looked at

// An answer on its way, and what reads it. Without it the answer is cancelled.
struct PendingAnswer {
  std::shared_ptr<Answer> answer;
  AnswerReader reader;
  bool complete = false;
  std::vector<ChosenToken> tokens = {};  // not sent yet
  Clock::time_point parsed = {};         // the last time
};

// `answers` of them to each job. number: ids of tool calls are made of it. Throws ApiError where
// they are more than the scheduler can take.
std::vector<PendingAnswer> submit(const Service& service, Scheduler& scheduler,
                                  const std::vector<PreparedJob>& jobs, int answers,
                                  std::uint64_t number);

// Waits for all of them. Throws ApiError if one fails or `gone` returns true.
std::vector<Completion> take_whole(const Service& service, std::vector<PendingAnswer> pending,
                                   const GiveUp& gone);

class EventStream {
 public:
  EventStream(const Service& service, std::vector<PendingAnswer> pending,
              std::unique_ptr<AnswerFormat> format);

  const AnswerFormat& format() const { return *format_; }

  // Waits for new output and appends it to `out`. True once the end has been appended; where
  // anything fails, that is an error.
  bool next(std::string& out, std::chrono::milliseconds patience);
  void cancel() noexcept;

 private:
  bool advance(std::string& out, std::chrono::milliseconds patience);
  void next_of(int index, std::string& out, std::chrono::milliseconds patience);

  const Service& service_;
  std::vector<PendingAnswer> pending_;
  std::unique_ptr<AnswerFormat> format_;
  bool opened_ = false;
};

ordered_json tokenize_reply(const Service& service, std::string_view body, const GiveUp& give_up);
ordered_json detokenize_reply(const Service& service, std::string_view body);
ordered_json props_reply(const Service& service);
ordered_json models_reply(const Service& service);
ordered_json apply_template_reply(const Service& service, std::string_view body,
                                  const GiveUp& give_up);
ordered_json slots_reply(const Service& service, const std::vector<SlotState>& slots);

// What ollama's clients ask before they chat.
ordered_json ollama_tags_reply(const Service& service);
ordered_json ollama_show_reply(const Service& service, std::string_view body);

// llama-server's POST /slots/{id}?action=save|restore|erase. Waits until the slot writes no answer,
// unless give_up returns true before. Throws ApiError: 400 (the slot, the action, the name, or a
// file of another model or ladder), 404 (no such file), 501 (there is no folder for them).
ordered_json slot_action_reply(const Service& service, Scheduler& scheduler,
                               const std::string& slot, const std::string& action,
                               std::string_view body, const GiveUp& give_up);

// The server's own page: a conversation with the model, its place on the ladder, and the plan.
// Rungs count from 1 there.
std::string serve_page(const Service& service);
std::string serve_style();
std::string serve_script();

// In Prometheus' text format. responses: how many, by status.
std::string metrics_text(const SchedulerCounts& counts,
                         const std::map<int, std::uint64_t>& responses, double uptime_seconds);

// Throws ApiError (404) unless this is the name of the model here.
void check_model(const Service& service, const std::string& name);

}  // namespace mrrope::serve
