// SPDX-License-Identifier: Apache-2.0
// What an answer says beyond its text (reasoning, content and tool calls, as its template writes
// them), and answers in the shapes that clients expect. What the shape does not have is under
// "mrrope"; rungs count from 0 there, as everywhere in JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/chat/chat.h"
#include "serve/api/request.h"
#include "serve/schedule/scheduler.h"

namespace mrrope::serve {

using ordered_json = nlohmann::ordered_json;

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

struct Service;

// The answers to one request, whole or as a stream: opening, chunk and closing for each of them,
// then end. The functions for streams append what is to be sent.
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
  // What the shape does not have.
  ordered_json about(const Outcome& outcome) const;
  // Tokens with their log-probabilities and those of the most likely ones.
  ordered_json token_list(const std::vector<ChosenToken>& tokens, bool with_ids) const;

  const Service& service_;
  const CompletionRequest request_;
  const std::string id_;
  const std::int64_t created_;  // seconds
};

// Those of each dialect, and that of the request's.
std::unique_ptr<AnswerFormat> make_openai_format(const AnswerFormat::Basis& basis);
std::unique_ptr<AnswerFormat> make_llama_format(const AnswerFormat::Basis& basis);
std::unique_ptr<AnswerFormat> make_responses_format(const AnswerFormat::Basis& basis);
std::unique_ptr<AnswerFormat> make_ollama_format(const AnswerFormat::Basis& basis);
std::unique_ptr<AnswerFormat> make_format(const Service& service, const CompletionRequest& request,
                                          std::uint64_t number);

// The place of a conversation on its ladder.
ordered_json place_json(const Ladder& ladder, const Progress& now);
ordered_json prefill_json(const Progress& now);

// The bytes of a text, which need not be UTF-8.
ordered_json bytes_json(const std::string& text);

// As llama-server reports it.
ordered_json progress_json(const Progress& now);
ordered_json timings_json(const Outcome& outcome);

// For the log: "reading a prompt: 4096 of 20000 tokens, 512 tokens/s, 31 s left, rung 2 of 9".
std::string prefill_text(const Progress& now, std::size_t rungs);

}  // namespace mrrope::serve
