// SPDX-License-Identifier: Apache-2.0
// OpenAI's responses: a list of items (reasoning, a message, calls of functions), whole or as
// events, each of which has a type and a number.
#include "base/json.h"
#include "base/text.h"
#include "serve/api/service.h"

namespace mrrope::serve {

namespace {

class ResponsesFormat final : public AnswerFormat {
 public:
  using AnswerFormat::AnswerFormat;

  void opening(std::string& out, int) override {
    event(out, "response.created", {{"response", response("in_progress")}});
    event(out, "response.in_progress", {{"response", response("in_progress")}});
  }

  void chunk(std::string& out, int, const Delta& delta, const Answer::Part&) override {
    if (!delta.reasoning.empty()) {
      if (!is_open("reasoning")) open(out, {{"type", "reasoning"}, {"summary", none()}});
      add(out, "response.reasoning_text.delta", delta.reasoning, {{"content_index", 0}});
    }
    if (!delta.content.empty()) {
      if (!is_open("message")) {
        open(out, {{"type", "message"}, {"role", "assistant"}, {"content", none()}});
        event(out, "response.content_part.added", part_place(text_part("")));
      }
      add(out, "response.output_text.delta", delta.content,
          {{"content_index", 0}, {"logprobs", none()}});
    }
    for (const auto& [index, call] : delta.calls) {
      if (!call.id.empty()) {
        open(out, {{"type", "function_call"},
                   {"call_id", call.id},
                   {"name", call.name},
                   {"arguments", ""}});
      }
      if (!call.arguments.empty()) {
        add(out, "response.function_call_arguments.delta", call.arguments, ordered_json::object());
      }
    }
  }

  void progress_event(std::string& out, int, const Progress& now) override {
    event(out, "response.in_progress",
          {{"response", response("in_progress")}, {"prompt_progress", progress_json(now)}});
  }

  void closing(std::string& out, int, const Outcome& outcome, bool) override {
    const bool cut = outcome.end == Outcome::End::length;
    close(out, cut);
    event(out, cut ? "response.incomplete" : "response.completed",
          {{"response", complete(outcome)}, {"timings", timings_json(outcome)}});
  }

  void failure(std::string& out, const ApiError& error) override {
    ordered_json failed = response("failed");
    failed["error"] = {{"code", error.code.empty() ? "server_error" : error.code},
                       {"message", error.what()}};
    event(out, "response.failed", {{"response", std::move(failed)}});
  }

  ordered_json whole(const std::vector<Completion>& answers) override {
    const Completion& answer = answers.front();
    std::string unsent;
    chunk(unsent, 0, answer.delta, {});
    close(unsent, answer.outcome.end == Outcome::End::length);
    ordered_json out = complete(answer.outcome);
    out["timings"] = timings_json(answer.outcome);
    return out;
  }

 private:
  static ordered_json none() { return ordered_json::array(); }

  static ordered_json text_part(const std::string& text) {
    return {{"type", "output_text"}, {"text", text}, {"annotations", none()}, {"logprobs", none()}};
  }

  void event(std::string& out, const char* type, ordered_json data) {
    ordered_json all = {{"type", type}, {"sequence_number", events_++}};
    all.update(data);
    out += cat("event: ", type, "\ndata: ", json_text(all), "\n\n");
  }

  ordered_json place(const ordered_json& more) const {
    ordered_json out = {{"item_id", items_.back()["id"]}, {"output_index", items_.size() - 1}};
    out.update(more);
    return out;
  }
  ordered_json part_place(const ordered_json& part) const {
    return place({{"content_index", 0}, {"part", part}});
  }

  bool is_open(const char* type) const {
    return open_ && !items_.empty() && items_.back()["type"] == type;
  }

  // The items of an answer come one after another.
  void open(std::string& out, ordered_json item) {
    close(out, false);
    const std::string type = item["type"];
    const char* prefix = type == "message" ? "msg_" : type == "reasoning" ? "rs_" : "fc_";
    item["id"] = cat(prefix, id_, items_.size());
    item["status"] = "in_progress";
    items_.push_back(std::move(item));
    text_.clear();
    open_ = true;
    event(out, "response.output_item.added",
          {{"output_index", items_.size() - 1}, {"item", items_.back()}});
  }

  void add(std::string& out, const char* type, const std::string& text, const ordered_json& more) {
    text_ += text;
    ordered_json data = place(more);
    data["delta"] = text;
    event(out, type, std::move(data));
  }

  void close(std::string& out, bool cut) {
    if (!open_) return;
    open_ = false;
    ordered_json& item = items_.back();
    item["status"] = cut ? "incomplete" : "completed";
    if (item["type"] == "message") {
      const ordered_json part = text_part(text_);
      item["content"] = ordered_json::array({part});
      event(out, "response.output_text.done",
            place({{"content_index", 0}, {"text", text_}, {"logprobs", none()}}));
      event(out, "response.content_part.done", part_place(part));
    } else if (item["type"] == "reasoning") {
      item["content"] = ordered_json::array({{{"type", "reasoning_text"}, {"text", text_}}});
      event(out, "response.reasoning_text.done", place({{"content_index", 0}, {"text", text_}}));
    } else {
      item["arguments"] = text_;
      event(out, "response.function_call_arguments.done",
            place({{"name", item["name"]}, {"arguments", text_}}));
    }
    event(out, "response.output_item.done", {{"output_index", items_.size() - 1}, {"item", item}});
  }

  ordered_json response(const char* status) const {
    static const ordered_json usual = ordered_json::parse(R"({"error": null,
        "incomplete_details": null, "instructions": null, "metadata": {}, "parallel_tool_calls": true,
        "tool_choice": "auto", "tools": [], "temperature": null, "top_p": null, "usage": null})");
    ordered_json out = {{"id", cat("resp_", id_)},
                        {"object", "response"},
                        {"created_at", created_},
                        {"status", status},
                        {"model", service_.settings.model_name},
                        {"output", items_}};
    out.update(usual);
    return out;
  }

  ordered_json complete(const Outcome& outcome) const {
    const bool cut = outcome.end == Outcome::End::length;
    ordered_json out = response(cut ? "incomplete" : "completed");
    if (cut) out["incomplete_details"] = {{"reason", "max_output_tokens"}};
    out["usage"] = {{"input_tokens", outcome.prompt},
                    {"input_tokens_details", {{"cached_tokens", outcome.cached}}},
                    {"output_tokens", outcome.written},
                    {"output_tokens_details", {{"reasoning_tokens", 0}}},
                    {"total_tokens", outcome.prompt + outcome.written}};
    out["mrrope"] = about(outcome);
    return out;
  }

  ordered_json items_ = ordered_json::array();  // the last one may be open
  std::string text_;                            // of that one
  bool open_ = false;
  int events_ = 0;
};

}  // namespace

std::unique_ptr<AnswerFormat> make_responses_format(const AnswerFormat::Basis& basis) {
  return std::make_unique<ResponsesFormat>(basis);
}

}  // namespace mrrope::serve
