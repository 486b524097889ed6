// SPDX-License-Identifier: Apache-2.0
// ollama's answers: /api/chat and /api/generate, whole or as one JSON object per line.
#include "base/json.h"
#include "base/text.h"
#include "serve/api/service.h"

namespace mrrope::serve {

namespace {

std::int64_t nanoseconds(double seconds) { return std::int64_t(1e9 * seconds); }

// ollama's calls have no parts: arguments are an object. Without those that are not whole.
ordered_json calls_json(const std::vector<Delta::Call>& calls, const Outcome& outcome) {
  ordered_json list = ordered_json::array();
  for (const auto& [index, call] : calls) {
    const auto arguments = arguments_of(call, outcome);
    if (!arguments) continue;
    list.push_back(
        {{"id", call.id}, {"function", {{"name", call.name}, {"arguments", *arguments}}}});
  }
  return list;
}

class OllamaFormat final : public AnswerFormat {
 public:
  using AnswerFormat::AnswerFormat;

  const char* stream_type() const override { return "application/x-ndjson"; }

  void chunk(std::string& out, int, const Delta& delta, const Answer::Part&) override {
    for (const auto& [index, call] : delta.calls) {
      if (index >= calls_.size()) calls_.resize(index + 1);
      if (!call.id.empty()) calls_[index] = {index, {call.id, call.name, {}}};
      calls_[index].call.arguments += call.arguments;
    }
    if (!delta.content.empty() || !delta.reasoning.empty()) line(out, head(delta, false));
  }

  // ollama says nothing while it reads a prompt, and every line has to be an answer.
  const char* nothing() const override { return " "; }
  void progress(std::string&, int, const Progress&) override {}

  void closing(std::string& out, int, const Outcome& outcome, bool) override {
    const ordered_json calls = calls_json(calls_, outcome);
    if (!calls.empty()) line(out, head({}, false, calls));
    line(out, last({}, outcome));
  }

  void failure(std::string& out, const ApiError& error) override {
    line(out, {{"error", error.what()}});
  }

  ordered_json whole(const std::vector<Completion>& answers) override {
    if (answers.empty()) {  // the model is loaded
      ordered_json out = head({}, true);
      out["done_reason"] = "load";
      return out;
    }
    return last(answers.front().delta, answers.front().outcome);
  }

 private:
  static void line(std::string& out, const ordered_json& value) { out += json_text(value) + "\n"; }

  ordered_json head(const Delta& delta, bool done, const ordered_json& calls = nullptr) const {
    ordered_json out = {{"model", service_.settings.model_name},
                        {"created_at", time_text(created_)}};
    const bool generated = request_.route == Route::ollama_generate;
    ordered_json message = {{"role", "assistant"}, {"content", delta.content}};
    if (generated) message = {{"response", delta.content}};
    if (!delta.reasoning.empty()) message["thinking"] = delta.reasoning;
    if (!calls.empty()) message["tool_calls"] = calls;
    out.update(generated ? message : ordered_json{{"message", message}});
    out["done"] = done;
    return out;
  }

  ordered_json last(const Delta& delta, const Outcome& outcome) const {
    ordered_json out = head(delta, true, calls_json(delta.calls, outcome));
    out["done_reason"] = outcome.end == Outcome::End::length ? "length" : "stop";
    out["total_duration"] = nanoseconds(outcome.read_seconds + outcome.write_seconds);
    out["load_duration"] = 0;
    out["prompt_eval_count"] = outcome.prompt;
    out["prompt_eval_duration"] = nanoseconds(outcome.read_seconds);
    out["eval_count"] = outcome.written;
    out["eval_duration"] = nanoseconds(outcome.write_seconds);
    out["mrrope"] = about(outcome);
    return out;
  }

  std::vector<Delta::Call> calls_;  // so far
};

}  // namespace

std::unique_ptr<AnswerFormat> make_ollama_format(const AnswerFormat::Basis& basis) {
  return std::make_unique<OllamaFormat>(basis);
}

}  // namespace mrrope::serve
