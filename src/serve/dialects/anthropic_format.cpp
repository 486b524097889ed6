// SPDX-License-Identifier: Apache-2.0
// Anthropic's messages: a list of blocks (thinking, text, uses of tools), whole or as events that
// open, extend and close one block after another.
#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "serve/api/service.h"

namespace mrrope::serve {

namespace {

const char* anthropic_error_type(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 404) return "not_found_error";
  if (status == 413) return "request_too_large";
  if (status == 429) return "rate_limit_error";
  if (status == 503) return "overloaded_error";
  if (status == 504) return "timeout_error";
  return status < 500 ? "invalid_request_error" : "api_error";
}

// What was cached is not counted as input.
ordered_json tokens_json(const Progress& now) {
  return {{"input_tokens", now.prompt - now.cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", now.cached},
          {"output_tokens", now.written}};
}

ordered_json tool_use_json(const engine::ToolCall& call, const ordered_json& input) {
  return {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input}};
}

// Nothing is signed.
ordered_json thinking_json(const std::string& text) {
  return {{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
}

class AnthropicFormat final : public AnswerFormat {
 public:
  using AnswerFormat::AnswerFormat;

  void chunk(std::string& out, int, const Delta& delta, const Answer::Part& part) override {
    start(out, part.now);
    if (!delta.reasoning.empty()) {
      if (open_ != "thinking") open(out, thinking_json(""));
      add(out, {{"type", "thinking_delta"}, {"thinking", delta.reasoning}});
    }
    // The rest of a call comes before what follows the call.
    for (const auto& [index, call] : delta.calls) {
      if (call.id.empty()) add_input(out, call);
    }
    if (!delta.content.empty()) {
      if (open_ != "text") open(out, {{"type", "text"}, {"text", ""}});
      add(out, {{"type", "text_delta"}, {"text", delta.content}});
    }
    for (const auto& [index, call] : delta.calls) {
      if (call.id.empty()) continue;
      open(out, tool_use_json(call, ordered_json::object()));
      add_input(out, call);
    }
  }

  void progress(std::string& out, int index, const Progress& now) override {
    start(out, now);
    send(out, "ping", ordered_json::object());
    AnswerFormat::progress(out, index, now);
  }

  void closing(std::string& out, int, const Outcome& outcome, bool calls) override {
    start(out, outcome);
    close(out);
    send(out, "message_delta",
         {{"delta", stop_json(outcome, calls)},
          {"usage", tokens_json(outcome)},
          {"mrrope", about(outcome)}});
    send(out, "message_stop", ordered_json::object());
  }

  void failure(std::string& out, const ApiError& error) override {
    send(out, "error", anthropic_error_json(error));
  }

  ordered_json whole(const std::vector<Completion>& answers) override {
    const Delta& delta = answers.front().delta;
    const Outcome& outcome = answers.front().outcome;
    ordered_json out = message(outcome);
    ordered_json& content = out["content"];
    if (!delta.reasoning.empty()) content.push_back(thinking_json(delta.reasoning));
    if (!delta.content.empty()) content.push_back({{"type", "text"}, {"text", delta.content}});
    bool calls = false;
    for (const auto& [index, call] : delta.calls) {
      const auto input = arguments_of(call, outcome);
      if (!input) continue;
      content.push_back(tool_use_json(call, *input));
      calls = true;
    }
    out.update(stop_json(outcome, calls));
    out["mrrope"] = about(outcome);
    return out;
  }

 private:
  static void send(std::string& out, const char* type, const ordered_json& data) {
    ordered_json all = {{"type", type}};
    all.update(data);
    out += cat("event: ", type, "\ndata: ", json_text(all), "\n\n");
  }

  ordered_json message(const Progress& now) const {
    return {{"id", "msg_" + id_},
            {"type", "message"},
            {"role", "assistant"},
            {"model", service_.settings.model_name},
            {"content", ordered_json::array()},
            {"stop_reason", nullptr},
            {"stop_sequence", nullptr},
            {"usage", tokens_json(now)}};
  }

  ordered_json stop_json(const Outcome& outcome, bool calls) const {
    const std::vector<std::string>& stops = request_.stop;  // the template may have others
    const std::string& text = outcome.stop_string;
    if (outcome.end == Outcome::End::length) {
      return {{"stop_reason", "max_tokens"}, {"stop_sequence", nullptr}};
    }
    if (has(stops, text)) {
      return {{"stop_reason", "stop_sequence"}, {"stop_sequence", text}};
    }
    return {{"stop_reason", calls ? "tool_use" : "end_turn"}, {"stop_sequence", nullptr}};
  }

  // As soon as the length of the prompt is known, which the first event tells.
  void start(std::string& out, const Progress& now) {
    if (!started_) send(out, "message_start", {{"message", message(now)}});
    started_ = true;
  }

  void open(std::string& out, const ordered_json& block) {
    close(out);
    open_ = block["type"];
    send(out, "content_block_start", {{"index", blocks_}, {"content_block", block}});
  }

  void add(std::string& out, const ordered_json& delta) {
    send(out, "content_block_delta", {{"index", blocks_}, {"delta", delta}});
  }

  void add_input(std::string& out, const engine::ToolCall& call) {
    if (call.arguments.empty()) return;
    add(out, {{"type", "input_json_delta"}, {"partial_json", call.arguments}});
  }

  void close(std::string& out) {
    if (open_.empty()) return;
    if (open_ == "thinking") add(out, {{"type", "signature_delta"}, {"signature", ""}});
    send(out, "content_block_stop", {{"index", blocks_++}});
    open_.clear();
  }

  bool started_ = false;
  std::string open_;  // the type of the open block; empty: none is
  int blocks_ = 0;    // before that one
};

}  // namespace

ordered_json anthropic_error_json(const ApiError& error) {
  // The words by which agents know that they have to shorten the conversation.
  const std::string length = error.excess
                                 ? cat("prompt is too long: ", error.excess->prompt, " tokens > ",
                                       error.excess->context - 1, " maximum: ")
                                 : "";
  return {{"type", "error"},
          {"error",
           {{"type", anthropic_error_type(error.status)}, {"message", length + error.what()}}}};
}

std::unique_ptr<AnswerFormat> make_anthropic_format(const AnswerFormat::Basis& basis) {
  return std::make_unique<AnthropicFormat>(basis);
}

}  // namespace mrrope::serve
