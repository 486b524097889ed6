// SPDX-License-Identifier: Apache-2.0
// OpenAI's chunks as server-sent events, with comments (lines that start with a colon, which
// clients skip) that report the progress of reading a long prompt.
#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "serve/dialects/dialects.h"

namespace mrrope::serve {

namespace {

ordered_json bytes_of(const std::string& piece) {
  ordered_json list = ordered_json::array();
  for (const char c : piece) list.push_back(static_cast<unsigned char>(c));
  return list;
}

// Parts of a character are told apart as OpenAI does: bytes:\xf0\x9f.
std::string name_of(const std::string& piece) {
  if (valid_utf8(piece) == piece) return piece;
  std::string name = "bytes:";
  for (const char c : piece) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    name += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return name;
}

// Offsets count characters. One may be spread over several tokens; it counts where it begins.
std::size_t characters(const std::string& piece) {
  return static_cast<std::size_t>(std::count_if(piece.begin(), piece.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

ordered_json calls_json(const Delta& delta, bool in_chunks) {
  ordered_json calls = ordered_json::array();
  for (const auto& [index, call] : delta.calls) {
    ordered_json one = ordered_json::object();
    if (in_chunks) one["index"] = index;
    if (!call.id.empty()) {
      one["id"] = call.id;
      one["type"] = "function";
    }
    if (!call.name.empty()) one["function"]["name"] = call.name;
    one["function"]["arguments"] = call.arguments;
    calls.push_back(std::move(one));
  }
  return calls;
}

class OpenAiFormat final : public AnswerFormat {
 public:
  OpenAiFormat(const AnswerFacts& facts, const CompletionRequest& request)
      : facts_(facts),
        chat_(request.chat),
        logprobs_(request.logprobs.has_value()),
        usage_(request.stream_usage),
        progress_(request.return_progress),
        ignored_(request.ignored),
        answers_(request.answers),
        offsets_(std::max<std::size_t>(1, request.prompts.size()) *
                     static_cast<std::size_t>(request.answers),
                 0) {}

  const char* stream_type() const override { return "text/event-stream"; }

  void opening(std::string& out, int index) override {
    if (!chat_) return;  // a chat names its role
    ordered_json chunk = head();
    chunk["choices"] = {{{"index", index},
                         {"delta", {{"role", "assistant"}, {"content", nullptr}}},
                         {"logprobs", nullptr},
                         {"finish_reason", nullptr}}};
    event(out, chunk);
  }

  void chunk(std::string& out, int index, const Delta& delta, const Answer::Part& part) override {
    ordered_json chunk = head();
    ordered_json choice = {{"index", index}};
    if (chat_) {
      ordered_json said = ordered_json::object();
      if (!delta.reasoning.empty()) said["reasoning_content"] = delta.reasoning;
      if (!delta.calls.empty()) said["tool_calls"] = calls_json(delta, true);
      if (!delta.content.empty() || said.empty()) said["content"] = delta.content;
      choice["delta"] = std::move(said);
    } else {
      choice["text"] = delta.content;
    }
    choice["logprobs"] = logprobs(index, part.tokens);
    choice["finish_reason"] = nullptr;
    chunk["choices"] = ordered_json::array({std::move(choice)});
    chunk["mrrope"] = place_json(facts_.ladder, part.rung, part.length);
    event(out, chunk);
  }

  void progress(std::string& out, int index, const Answer::Part& part) override {
    const Prefill& prefill = *part.prefill;
    ordered_json place = place_json(facts_.ladder, part.rung, part.length);
    if (progress_) {
      ordered_json chunk = head();
      ordered_json choice = {{"index", index}};
      if (chat_) {
        choice["delta"] = {{"content", nullptr}};
      } else {
        choice["text"] = "";
      }
      choice["logprobs"] = nullptr;
      choice["finish_reason"] = nullptr;
      chunk["choices"] = ordered_json::array({std::move(choice)});
      chunk["prompt_progress"] = progress_json(prefill);
      chunk["mrrope"] = std::move(place);
      return event(out, chunk);
    }
    place["prefill"] = {{"read", prefill.read},
                        {"total", prefill.total},
                        {"tokens_per_second", prefill.rate()},
                        {"seconds_left", prefill.seconds_left()}};
    out += cat(": ", to_text({{"mrrope", std::move(place)}}), "\n\n");
  }

  void closing(std::string& out, int index, const Outcome& outcome, bool calls) override {
    ordered_json chunk = head();
    ordered_json choice = {{"index", index}};
    if (chat_) {
      choice["delta"] = ordered_json::object();
    } else {
      choice["text"] = "";
    }
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = finish_reason(outcome, calls);
    chunk["choices"] = ordered_json::array({std::move(choice)});
    chunk["mrrope"] = about_json(facts_.ladder, outcome, ignored_);
    event(out, chunk);
  }

  void failure(std::string& out, const ApiError& error) override {
    event(out, error_json(error));
    out += "data: [DONE]\n\n";
  }

  void end(std::string& out, const std::vector<Outcome>& outcomes) override {
    if (usage_) {
      ordered_json chunk = head();
      chunk["choices"] = ordered_json::array();
      chunk["usage"] = usage_json(outcomes, answers_);
      chunk["timings"] = timings_json(outcomes.back());
      chunk["mrrope"] = about_json(facts_.ladder, outcomes.back(), ignored_);
      event(out, chunk);
    }
    out += "data: [DONE]\n\n";
  }

  ordered_json whole(const std::vector<WholeAnswer>& answers) override {
    ordered_json out = head(false);
    out["choices"] = ordered_json::array();
    std::vector<Outcome> outcomes;
    for (const WholeAnswer& answer : answers) {
      const int index = static_cast<int>(outcomes.size());
      ordered_json choice = {{"index", index}};
      if (chat_) {
        choice["message"] = message(answer.said);
      } else {
        choice["text"] = answer.said.content;
      }
      choice["logprobs"] = logprobs(index, answer.tokens);
      choice["finish_reason"] = finish_reason(answer.outcome, !answer.said.calls.empty());
      out["choices"].push_back(std::move(choice));
      outcomes.push_back(answer.outcome);
    }
    out["usage"] = usage_json(outcomes, answers_);
    out["timings"] = timings_json(outcomes.back());
    out["mrrope"] = about_json(facts_.ladder, outcomes.back(), ignored_);
    return out;
  }

 private:
  static ordered_json message(const Delta& said) {
    ordered_json message = {{"role", "assistant"}};
    const bool silent = said.content.empty() && !said.calls.empty();
    message["content"] = silent ? ordered_json(nullptr) : ordered_json(said.content);
    message["refusal"] = nullptr;
    if (!said.reasoning.empty()) message["reasoning_content"] = said.reasoning;
    if (!said.calls.empty()) message["tool_calls"] = calls_json(said, false);
    return message;
  }

  static void event(std::string& out, const ordered_json& data) {
    out += cat("data: ", to_text(data), "\n\n");
  }

  ordered_json head(bool chunk = true) const {
    const char* kind = "text_completion";
    if (chat_) kind = chunk ? "chat.completion.chunk" : "chat.completion";
    return {{"id", facts_.id},
            {"object", kind},
            {"created", facts_.created},
            {"model", facts_.model_name}};
  }

  ordered_json logprobs(int index, const std::vector<ChosenToken>& tokens) {
    if (!logprobs_) return nullptr;
    if (chat_) {
      ordered_json content = ordered_json::array();
      const auto entry = [&](Token token, double logprob) {
        const std::string piece = facts_.model.piece(token);
        return ordered_json{{"token", piece}, {"logprob", logprob}, {"bytes", bytes_of(piece)}};
      };
      for (const ChosenToken& chosen : tokens) {
        ordered_json one = entry(chosen.token, chosen.logprob);
        one["top_logprobs"] = ordered_json::array();
        for (const auto& [token, logprob] : chosen.top) {
          one["top_logprobs"].push_back(entry(token, logprob));
        }
        content.push_back(std::move(one));
      }
      return {{"content", std::move(content)}};
    }
    ordered_json names = ordered_json::array(), values = ordered_json::array();
    ordered_json tops = ordered_json::array(), offsets = ordered_json::array();
    std::size_t& offset = offsets_[static_cast<std::size_t>(index)];
    for (const ChosenToken& chosen : tokens) {
      const std::string piece = facts_.model.piece(chosen.token);
      names.push_back(name_of(piece));
      values.push_back(chosen.logprob);
      offsets.push_back(offset);
      offset += characters(piece);
      ordered_json top = ordered_json::object();
      for (const auto& [token, logprob] : chosen.top) {
        top[name_of(facts_.model.piece(token))] = logprob;
      }
      tops.push_back(std::move(top));
    }
    return {{"tokens", names},
            {"token_logprobs", values},
            {"top_logprobs", tops},
            {"text_offset", offsets}};
  }

  AnswerFacts facts_;
  bool chat_;
  bool logprobs_;
  bool usage_;
  bool progress_;
  std::vector<std::string> ignored_;
  int answers_;                       // to each prompt
  std::vector<std::size_t> offsets_;  // bytes of tokens listed so far, per answer
};

}  // namespace

std::unique_ptr<AnswerFormat> make_openai_format(const AnswerFacts& facts,
                                                 const CompletionRequest& request) {
  return std::make_unique<OpenAiFormat>(facts, request);
}

}  // namespace mrrope::serve
