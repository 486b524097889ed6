// SPDX-License-Identifier: Apache-2.0
#include "serve/api/format.h"

#include "base/text.h"

namespace mrrope::serve {

namespace {

const char* error_type(int status) {
  switch (status) {
    case 401:
    case 403:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

ordered_json json_or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

ordered_json bytes_of(const std::string& piece) {
  ordered_json list = ordered_json::array();
  for (const char c : piece) list.push_back(static_cast<unsigned char>(c));
  return list;
}

}  // namespace

std::string to_text(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json error_json(const ApiError& error) {
  return {{"error",
           {{"message", error.what()},
            {"type", error_type(error.status)},
            {"param", json_or_null(error.param)},
            {"code", json_or_null(error.code)}}}};
}

const char* finish_reason(const Outcome& outcome) {
  return outcome.end == Outcome::End::length ? "length" : "stop";
}

ordered_json usage_json(const Outcome& outcome) {
  return {{"prompt_tokens", outcome.prompt},
          {"completion_tokens", outcome.written},
          {"total_tokens", outcome.prompt + outcome.written},
          {"prompt_tokens_details", {{"cached_tokens", outcome.cached}}}};
}

std::string prefill_text(const Prefill& prefill, std::size_t rungs) {
  const bool whole = prefill.read == prefill.total;
  const std::string amount =
      whole ? cat("read a prompt of ", prefill.total, " tokens in ", duration_text(prefill.seconds))
            : cat("reading a prompt: ", prefill.read, " of ", prefill.total, " tokens");
  const std::string left =
      whole ? std::string() : cat(", ", duration_text(prefill.seconds_left()), " left");
  return cat(amount, ", ", significant(prefill.rate(), 3), " tokens/s", left, ", rung ",
             prefill.rung + 1, " of ", rungs);
}

AnswerFormat::AnswerFormat(const TimelineModel& model, const Ladder& ladder,
                           const CompletionRequest& request, std::string id, std::string model_name,
                           std::int64_t created)
    : model_(model),
      ladder_(ladder),
      chat_(request.chat),
      logprobs_(request.logprobs.has_value()),
      ignored_(request.ignored),
      id_(std::move(id)),
      name_(std::move(model_name)),
      created_(created) {}

ordered_json AnswerFormat::head(const char* kind) const {
  return {{"id", id_}, {"object", kind}, {"created", created_}, {"model", name_}};
}

// The place of a conversation on its ladder.
ordered_json AnswerFormat::place(std::size_t rung, std::int64_t length) const {
  return {{"rung", rung},
          {"rungs", ladder_.rungs().size()},
          {"scale", ladder_.rungs()[rung].plan.extension().scale},
          {"length", length}};
}

ordered_json AnswerFormat::about(const Outcome& outcome) const {
  ordered_json out = place(outcome.rung, outcome.length);
  out["read_seconds"] = outcome.read_seconds;
  out["write_seconds"] = outcome.write_seconds;
  if (!ignored_.empty()) out["ignored"] = ignored_;
  return out;
}

ordered_json AnswerFormat::logprobs(const std::vector<ChosenToken>& tokens) {
  if (!logprobs_) return nullptr;
  if (chat_) {
    ordered_json content = ordered_json::array();
    const auto entry = [&](Token token, double logprob) {
      const std::string piece = model_.piece(token);
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
  for (const ChosenToken& chosen : tokens) {
    const std::string piece = model_.piece(chosen.token);
    names.push_back(piece);
    values.push_back(chosen.logprob);
    offsets.push_back(offset_);
    offset_ += piece.size();
    ordered_json top = ordered_json::object();
    for (const auto& [token, logprob] : chosen.top) top[model_.piece(token)] = logprob;
    tops.push_back(std::move(top));
  }
  return {{"tokens", names},
          {"token_logprobs", values},
          {"top_logprobs", tops},
          {"text_offset", offsets}};
}

ordered_json AnswerFormat::opening() const {
  ordered_json out = head("chat.completion.chunk");
  out["choices"] = {{{"index", 0},
                     {"delta", {{"role", "assistant"}, {"content", ""}}},
                     {"logprobs", nullptr},
                     {"finish_reason", nullptr}}};
  return out;
}

ordered_json AnswerFormat::chunk(const Answer::Part& part) {
  ordered_json out = head(chat_ ? "chat.completion.chunk" : "text_completion");
  ordered_json choice = {{"index", 0}};
  if (chat_) {
    choice["delta"] = {{"content", part.text}};
  } else {
    choice["text"] = part.text;
  }
  choice["logprobs"] = logprobs(part.tokens);
  choice["finish_reason"] = nullptr;
  out["choices"] = ordered_json::array({std::move(choice)});
  out["mrrope"] = place(part.rung, part.length);
  return out;
}

ordered_json AnswerFormat::prefill(const Answer::Part& part) const {
  const Prefill& prefill = *part.prefill;
  ordered_json out = place(part.rung, part.length);
  out["prefill"] = {{"read", prefill.read},
                    {"total", prefill.total},
                    {"tokens_per_second", prefill.rate()},
                    {"seconds_left", prefill.seconds_left()}};
  return {{"mrrope", std::move(out)}};
}

ordered_json AnswerFormat::closing(const Outcome& outcome) const {
  ordered_json out = head(chat_ ? "chat.completion.chunk" : "text_completion");
  ordered_json choice = {{"index", 0}};
  if (chat_) {
    choice["delta"] = ordered_json::object();
  } else {
    choice["text"] = "";
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = finish_reason(outcome);
  out["choices"] = ordered_json::array({std::move(choice)});
  out["mrrope"] = about(outcome);
  return out;
}

ordered_json AnswerFormat::usage_chunk(const Outcome& outcome) const {
  ordered_json out = head(chat_ ? "chat.completion.chunk" : "text_completion");
  out["choices"] = ordered_json::array();
  out["usage"] = usage_json(outcome);
  out["mrrope"] = about(outcome);
  return out;
}

ordered_json AnswerFormat::whole(const std::string& text, const std::vector<ChosenToken>& tokens,
                                 const Outcome& outcome) {
  ordered_json out = head(chat_ ? "chat.completion" : "text_completion");
  ordered_json choice = {{"index", 0}};
  if (chat_) {
    choice["message"] = {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}};
  } else {
    choice["text"] = text;
  }
  choice["logprobs"] = logprobs(tokens);
  choice["finish_reason"] = finish_reason(outcome);
  out["choices"] = ordered_json::array({std::move(choice)});
  out["usage"] = usage_json(outcome);
  out["mrrope"] = about(outcome);
  return out;
}

}  // namespace mrrope::serve
