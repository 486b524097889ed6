// SPDX-License-Identifier: Apache-2.0
// OpenAI's completions and chats, whole or as chunks.
#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "serve/api/service.h"

namespace mrrope::serve {

namespace {

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

const char* finish_reason(const Outcome& outcome, bool calls) {
  if (outcome.end == Outcome::End::length) return "length";
  return calls ? "tool_calls" : "stop";
}

// Prompts are counted once, answers all together: `answers` of them to each prompt.
ordered_json usage_json(const std::vector<Outcome>& outcomes, int answers) {
  std::int64_t prompt = 0, cached = 0, written = 0;
  const auto each = static_cast<std::size_t>(answers);
  for (std::size_t first = 0; first < outcomes.size(); first += each) {
    std::int64_t least = outcomes[first].cached;
    for (std::size_t i = first; i < std::min(first + each, outcomes.size()); ++i) {
      least = std::min(least, outcomes[i].cached);
      written += outcomes[i].written;
    }
    prompt += outcomes[first].prompt;
    cached += least;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", written},
          {"total_tokens", prompt + written},
          {"prompt_tokens_details", {{"cached_tokens", cached}}}};
}

class OpenAiFormat final : public AnswerFormat {
 public:
  OpenAiFormat(const Service& service, const CompletionRequest& request, std::uint64_t number)
      : AnswerFormat(service, request, number),
        chat_(request.chat),
        usage_(request.stream_usage),
        answers_(request.answers),
        offsets_(std::max<std::size_t>(1, request.prompts.size()) *
                     static_cast<std::size_t>(request.answers),
                 0) {}

  void opening(std::string& out, int index) override {
    if (!chat_) return;  // a chat names its role
    event(out, chunk_of(index, {{"role", "assistant"}, {"content", nullptr}}));
  }

  void chunk(std::string& out, int index, const Delta& delta, const Answer::Part& part) override {
    ordered_json said = ordered_json::object();
    if (!delta.reasoning.empty()) said["reasoning_content"] = delta.reasoning;
    if (!delta.calls.empty()) said["tool_calls"] = calls_json(delta, true);
    if (!delta.content.empty() || said.empty()) said["content"] = delta.content;
    ordered_json chunk =
        chunk_of(index, std::move(said), delta.content, logprobs(index, part.tokens));
    chunk["mrrope"] = place_json(service_.ladder, part.now);
    event(out, chunk);
  }

  void progress_event(std::string& out, int index, const Progress& now) override {
    ordered_json chunk = chunk_of(index, {{"content", nullptr}});
    chunk["prompt_progress"] = progress_json(now);
    chunk["mrrope"] = place_json(service_.ladder, now);
    event(out, chunk);
  }

  void closing(std::string& out, int index, const Outcome& outcome, bool calls) override {
    ordered_json chunk =
        chunk_of(index, ordered_json::object(), "", nullptr, finish_reason(outcome, calls));
    chunk["mrrope"] = about(outcome);
    event(out, chunk);
  }

  void failure(std::string& out, const ApiError& error) override {
    AnswerFormat::failure(out, error);
    out += "data: [DONE]\n\n";
  }

  void end(std::string& out, const std::vector<Outcome>& outcomes) override {
    if (usage_) event(out, with_totals(head(true), outcomes));
    out += "data: [DONE]\n\n";
  }

  ordered_json whole(const std::vector<Completion>& answers) override {
    ordered_json out = head(false);
    std::vector<Outcome> outcomes;
    for (const Completion& answer : answers) {
      const int index = static_cast<int>(outcomes.size());
      ordered_json choice = {{"index", index}};
      if (chat_) {
        choice["message"] = message(answer.delta);
      } else {
        choice["text"] = answer.delta.content;
      }
      choice["logprobs"] = logprobs(index, answer.tokens);
      choice["finish_reason"] = finish_reason(answer.outcome, !answer.delta.calls.empty());
      out["choices"].push_back(std::move(choice));
      outcomes.push_back(answer.outcome);
    }
    return with_totals(std::move(out), outcomes);
  }

 private:
  static ordered_json message(const Delta& delta) {
    ordered_json message = {{"role", "assistant"}};
    const bool silent = delta.content.empty() && !delta.calls.empty();
    message["content"] = silent ? ordered_json(nullptr) : ordered_json(delta.content);
    message["refusal"] = nullptr;
    if (!delta.reasoning.empty()) message["reasoning_content"] = delta.reasoning;
    if (!delta.calls.empty()) message["tool_calls"] = calls_json(delta, false);
    return message;
  }

  ordered_json head(bool chunk) const {
    const char* kind = "text_completion";
    if (chat_) kind = chunk ? "chat.completion.chunk" : "chat.completion";
    return {{"id", (chat_ ? "chatcmpl-" : "cmpl-") + id_},
            {"object", kind},
            {"created", created_},
            {"model", service_.settings.model_name},
            {"choices", ordered_json::array()}};
  }

  // A chat has a delta, a completion a text.
  ordered_json chunk_of(int index, ordered_json delta, const std::string& text = {},
                        ordered_json logprobs = nullptr, ordered_json finish = nullptr) const {
    ordered_json choice = {{"index", index}};
    if (chat_) {
      choice["delta"] = std::move(delta);
    } else {
      choice["text"] = text;
    }
    choice["logprobs"] = std::move(logprobs);
    choice["finish_reason"] = std::move(finish);
    ordered_json chunk = head(true);
    chunk["choices"].push_back(std::move(choice));
    return chunk;
  }

  ordered_json with_totals(ordered_json out, const std::vector<Outcome>& outcomes) const {
    out["usage"] = usage_json(outcomes, answers_);
    out["timings"] = timings_json(outcomes.back());
    out["mrrope"] = about(outcomes.back());
    return out;
  }

  ordered_json logprobs(int index, const std::vector<ChosenToken>& tokens) {
    if (!logprobs_) return nullptr;
    if (chat_) return {{"content", token_list(tokens, false)}};
    ordered_json out = {{"tokens", ordered_json::array()},
                        {"token_logprobs", ordered_json::array()},
                        {"top_logprobs", ordered_json::array()},
                        {"text_offset", ordered_json::array()}};
    std::size_t& offset = offsets_[static_cast<std::size_t>(index)];
    for (const ChosenToken& chosen : tokens) {
      const std::string piece = service_.model.piece(chosen.token);
      out["tokens"].push_back(name_of(piece));
      out["token_logprobs"].push_back(chosen.logprob);
      out["text_offset"].push_back(offset);
      offset += characters(piece);
      ordered_json top = ordered_json::object();
      for (const auto& [token, logprob] : chosen.top) {
        top[name_of(service_.model.piece(token))] = logprob;
      }
      out["top_logprobs"].push_back(std::move(top));
    }
    return out;
  }

  bool chat_;
  bool usage_;
  int answers_;                       // to each prompt
  std::vector<std::size_t> offsets_;  // bytes of tokens listed so far, per answer
};

}  // namespace

std::unique_ptr<AnswerFormat> make_openai_format(const Service& service,
                                                 const CompletionRequest& request,
                                                 std::uint64_t number) {
  return std::make_unique<OpenAiFormat>(service, request, number);
}

}  // namespace mrrope::serve
