// SPDX-License-Identifier: Apache-2.0
// What the routes do, without HTTP: from bodies to jobs, from what a model writes to what it says
// (reasoning, content and tool calls), and to JSON in the shapes that clients expect. All of it may
// be called from any thread; what fails throws ApiError or Error.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/chat.h"
#include "engine/session/session.h"
#include "model/timeline_model.h"
#include "serve/api/request.h"
#include "serve/schedule/scheduler.h"

namespace mrrope::serve {

using ordered_json = nlohmann::ordered_json;

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
  // Gets a line about every request when it ends: counts, never content. From any thread.
  std::function<void(const std::string&)> on_request = {};
  bool json_log = false;  // that line is JSON
};

// Called a few times per second while a request waits; true ends it.
using GiveUp = engine::ChatRenderer::GiveUp;

// What ollama's clients ask of a model.
struct ModelCard {
  std::string digest;
  std::uint64_t parameters = 0;  // 0: not known
  std::string quantization;
};

struct Service {
  TimelineModel& model;
  const Ladder ladder;
  engine::ChatRenderer& renderer;
  const ServerSettings settings;
  const std::optional<ChatTemplate> chat;
  const std::string chat_error;  // empty, or why the model's chat template cannot be used
  const bool has_tools;          // the template has a place for them
  const BodyLimits limits;
  const std::shared_future<ModelCard> card;  // made in the background
};

// Applies the model's chat template, to find out whether it can be used, and with tools.
Service make_service(TimelineModel& model, const Ladder& ladder, engine::ChatRenderer& renderer,
                     const ServerSettings& settings);

// How the text of an answer is read.
struct AnswerSyntax {
  std::string syntax;      // of ChatPrompt; empty: the text is the content
  bool continues = false;  // a message of the request, which is not repeated
  // Tools that the model may call. An answer that is nothing but the JSON of calls makes them too:
  // some models know their template's tags and leave them out.
  std::vector<std::string> tools = {};
  std::string echo = {};  // precedes the answer
  bool parallel = true;   // more than one call in an answer
};

// What was added since the previous one.
struct Delta {
  struct Call {
    std::size_t index = 0;
    engine::ToolCall call;  // id and name with the first part of its arguments only
  };
  std::string content;
  std::string reasoning;
  std::vector<Call> calls;

  bool empty() const { return content.empty() && reasoning.empty() && calls.empty(); }
};

// One of the answers to a request, complete.
struct Completion {
  Delta delta;
  std::vector<ChosenToken> tokens;
  Outcome outcome;
};

class AnswerReader {
 public:
  // number: ids of tool calls are made of it, where the model writes none.
  AnswerReader(engine::ChatRenderer& renderer, AnswerSyntax syntax, std::uint64_t number);

  // Whether the text has to be parsed, which takes some time.
  bool parses() const { return !syntax_.syntax.empty(); }

  // last: nothing more will come.
  Delta add(const std::string& text, bool last);

  bool has_calls() const { return !sent_.calls.empty(); }

 private:
  engine::ParsedAnswer parse(bool last);

  engine::ChatRenderer& renderer_;
  AnswerSyntax syntax_;
  std::uint64_t number_;
  bool begun_ = false;
  std::string text_;
  engine::ParsedAnswer sent_;  // what was passed on
};

// What a request asks for each of its prompts: a job, and how its answer is read. For several
// answers the job is done as often, each with the next seed.
struct PreparedJob {
  Job job;
  AnswerSyntax syntax;
};

// give_up is called while the request waits for its template, schema or grammar, and while a long
// prompt is being tokenized; where it returns true, ApiError (499) is thrown.
std::vector<PreparedJob> prepare_jobs(const Service& service, const CompletionRequest& request,
                                      const GiveUp& give_up);

constexpr std::chrono::milliseconds kDisconnectPoll{200};  // how often clients are looked at

// What a request used, over all its answers; the line about it. route: "POST /completion".
void add_use(Progress& use, const Progress& answer);
std::string log_line(const Progress& use, const std::string& route, double milliseconds, int status,
                     bool json);

// An answer on its way, and what reads it. Without it the answer is cancelled.
struct PendingAnswer {
  std::shared_ptr<Answer> answer;
  AnswerReader reader;
  bool complete = false;
  std::vector<ChosenToken> tokens = {};  // not sent yet
  Clock::time_point parsed = {};         // the last time
  Progress now = {};
};

// `answers` of them to each job. number: ids of tool calls are made of it. Throws ApiError where
// they are more than the scheduler can take.
std::vector<PendingAnswer> submit(const Service& service, Scheduler& scheduler,
                                  const std::vector<PreparedJob>& jobs, int answers,
                                  std::uint64_t number);

// Waits for what the scheduler's thread computes. Throws ApiError where give_up returns true or the
// server stops, and what was thrown there.
template <typename T>
T result_of(std::future<T> result, const GiveUp& give_up) {
  constexpr std::chrono::milliseconds kPoll{100};
  while (result.wait_for(kPoll) != std::future_status::ready) {
    if (give_up()) throw ApiError(499, "the client closed the connection", {}, "cancelled");
  }
  try {
    return result.get();
  } catch (const std::future_error&) {
    throw ApiError(503, "the server has stopped", {}, "shutting_down");
  }
}

// Waits for all of them. Throws ApiError if one fails or `gone` returns true.
std::vector<Completion> take_whole(const Service& service, std::vector<PendingAnswer> pending,
                                   const GiveUp& gone, Progress* use = nullptr);

ordered_json error_json(const ApiError& error);
ordered_json anthropic_error_json(const ApiError& error);

// Every token whose logit a request changes.
std::vector<std::pair<Token, float>> token_biases(const TimelineModel& model,
                                                  const CompletionRequest& request);

// The answers to one request, whole or as a stream: opening, chunk and closing for each of them,
// then end. The functions for streams append what is to be sent. What the shape does not have is
// under "mrrope"; rungs count from 0 there, as everywhere in JSON.
class AnswerFormat {
 public:
  // Only the service has to stay. number: the id of the answer is made of it.
  struct Basis {
    const Service& service;
    const CompletionRequest& request;
    std::uint64_t number;
  };
  explicit AnswerFormat(const Basis& basis);
  virtual ~AnswerFormat() = default;

  virtual const char* stream_type() const { return "text/event-stream"; }  // of the content
  virtual const char* nothing() const { return ": waiting\n\n"; }  // may stand between two events
  virtual void opening(std::string&, int /*index*/) {}
  virtual void chunk(std::string& out, int index, const Delta& delta, const Answer::Part& part) = 0;
  // How far the prompt is read: a comment, which clients skip, or an event if they ask for it.
  virtual void progress(std::string& out, int index, const Progress& now);
  virtual void closing(std::string& out, int index, const Outcome& outcome, bool calls) = 0;
  virtual void failure(std::string& out, const ApiError& error) { event(out, error_json(error)); }
  virtual void end(std::string&, const std::vector<Outcome>&) {}

  virtual ordered_json whole(const std::vector<Completion>& answers) = 0;

 protected:
  virtual void progress_event(std::string&, int /*index*/, const Progress&) {}
  static void event(std::string& out, const ordered_json& data);
  ordered_json about(const Outcome& outcome) const;
  // Tokens with their log-probabilities and those of the most likely ones.
  ordered_json token_list(const std::vector<ChosenToken>& tokens, bool with_ids) const;

  const Service& service_;
  const CompletionRequest request_;
  const std::string id_;
  const std::int64_t created_;  // seconds
};

// Those of each dialect, and that of the request's.
using MakeFormat = std::unique_ptr<AnswerFormat>(const AnswerFormat::Basis& basis);
MakeFormat make_openai_format, make_llama_format, make_responses_format, make_ollama_format,
    make_anthropic_format;
MakeFormat make_format;

ordered_json place_json(const Ladder& ladder, const Progress& now);  // on the ladder
ordered_json prefill_json(const Progress& now);
ordered_json progress_json(const Progress& now);  // these two as llama-server reports them
ordered_json timings_json(const Outcome& outcome);
ordered_json bytes_json(const std::string& text);  // which need not be UTF-8
// Those of a call as an object; nullopt of the last call of an answer that was cut off in it.
std::optional<ordered_json> arguments_of(const engine::ToolCall& call, const Outcome& outcome);

// For the log: "reading a prompt: 4096 of 20000 tokens, 512 tokens/s, 31 s left, rung 2 of 9".
std::string prefill_text(const Progress& now, std::size_t rungs);

class EventStream {
 public:
  EventStream(const Service& service, std::vector<PendingAnswer> pending,
              std::unique_ptr<AnswerFormat> format);

  const AnswerFormat& format() const { return *format_; }
  Progress use() const;
  int status() const { return status_; }  // 200 unless something failed

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
  int status_ = 200;
};

ordered_json tokenize_reply(const Service& service, std::string_view body, const GiveUp& give_up);
ordered_json detokenize_reply(const Service& service, std::string_view body);
ordered_json props_reply(const Service& service);
ordered_json models_reply(const Service& service);
ordered_json apply_template_reply(const Service& service, std::string_view body,
                                  const GiveUp& give_up);
// Anthropic's: how long the prompt of a message would be.
ordered_json count_tokens_reply(const Service& service, std::string_view body,
                                const GiveUp& give_up);
ordered_json slots_reply(const Service& service, const std::vector<SlotState>& slots);

// OpenAI's embeddings, ollama's embed, or ollama's older embeddings.
ordered_json embeddings_reply(const Service& service, Scheduler& scheduler, Route route,
                              std::string_view body, const GiveUp& give_up, Progress& use);

// What ollama's clients ask before they chat.
ModelCard model_card(const Model& model);
ordered_json ollama_tags_reply(const Service& service);
ordered_json ollama_ps_reply(const Service& service);
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

// For prepare_jobs() and others; field: where the prompt comes from.
std::vector<Token> tokens_of_prompt(const Service& service, const std::vector<PromptPart>& prompt,
                                    const char* field, const GiveUp& give_up);
GiveUp with_deadline(const Service& service, const GiveUp& give_up);

}  // namespace mrrope::serve
