// SPDX-License-Identifier: Apache-2.0
// OpenAI's completions and chats, whole or as chunks.
#include <algorithm>
#include <map>

#include "base/json.h"
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
  return std::size_t(std::ranges::count_if(
      piece, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
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
  const auto each = std::size_t(answers);
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
  using AnswerFormat::AnswerFormat;

  void opening(std::string& out, int index) override {
    if (!chat_) return;  // a chat names its role
    event(out, chunk_of(index, {{"role", "assistant"}, {"content", nullptr}}));
  }

  void chunk(std::string& out, int index, const Delta& delta, const Answer::Part& part) override {
    ordered_json said = ordered_json::object();
    if (!delta.reasoning.empty()) said["reasoning_content"] = delta.reasoning;
    if (!delta.calls.empty()) said["tool_calls"] = calls_json(delta, true);
    if (!delta.content.empty() || said.empty()) said["content"] = delta.content;
    ordered_json chunk = chunk_of(index, said, delta.content, logprobs(index, part.tokens));
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
    if (request_.stream_usage) event(out, with_totals(head(true), outcomes));
    out += "data: [DONE]\n\n";
  }

  ordered_json whole(const std::vector<Completion>& answers) override {
    ordered_json out = head(false);
    std::vector<Outcome> outcomes;
    for (const Completion& answer : answers) {
      const int index = int(outcomes.size());
      const ordered_json said = chat_ ? message(answer.delta) : ordered_json(answer.delta.content);
      out["choices"].push_back(
          {{"index", index},
           {chat_ ? "message" : "text", said},
           {"logprobs", logprobs(index, answer.tokens)},
           {"finish_reason", finish_reason(answer.outcome, !answer.delta.calls.empty())}});
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
  ordered_json chunk_of(int index, const ordered_json& delta, const std::string& text = {},
                        const ordered_json& logprobs = nullptr,
                        const ordered_json& finish = nullptr) const {
    ordered_json chunk = head(true);
    chunk["choices"].push_back({{"index", index},
                                {chat_ ? "delta" : "text", chat_ ? delta : ordered_json(text)},
                                {"logprobs", logprobs},
                                {"finish_reason", finish}});
    return chunk;
  }

  ordered_json with_totals(ordered_json out, const std::vector<Outcome>& outcomes) const {
    out["usage"] = usage_json(outcomes, request_.answers);
    out["timings"] = timings_json(outcomes.back());
    out["mrrope"] = about(outcomes.back());
    return out;
  }

  ordered_json logprobs(int index, const std::vector<ChosenToken>& tokens) {
    if (!request_.logprobs) return nullptr;
    if (chat_) return {{"content", token_list(tokens, false)}};
    ordered_json out = {{"tokens", ordered_json::array()},
                        {"token_logprobs", ordered_json::array()},
                        {"top_logprobs", ordered_json::array()},
                        {"text_offset", ordered_json::array()}};
    std::size_t& offset = offsets_[index];
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

  const bool chat_ = request_.chat;
  std::map<int, std::size_t> offsets_;  // characters of tokens listed so far, per answer
};

}  // namespace

std::unique_ptr<AnswerFormat> make_openai_format(const AnswerFormat::Basis& basis) {
  return std::make_unique<OpenAiFormat>(basis);
}

}  // namespace mrrope::serve
