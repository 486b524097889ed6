// SPDX-License-Identifier: Apache-2.0
#include "serve/api/format.h"

#include <algorithm>

#include "base/json.h"
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

double rate(std::int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

ordered_json error_json(const ApiError& error) {
  ordered_json about = {{"message", error.what()},
                        {"type", error_type(error.status)},
                        {"param", json_or_null(error.param)},
                        {"code", json_or_null(error.code)}};
  if (error.excess) {  // as llama-server reports it
    about["type"] = "exceed_context_size_error";
    about["n_prompt_tokens"] = error.excess->prompt;
    about["n_ctx"] = error.excess->context;
  }
  return {{"error", std::move(about)}};
}

const char* finish_reason(const Outcome& outcome, bool calls) {
  if (outcome.end == Outcome::End::length) return "length";
  return calls ? "tool_calls" : "stop";
}

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

ordered_json place_json(const Ladder& ladder, std::size_t rung, std::int64_t length) {
  return {{"rung", rung},
          {"rungs", ladder.rungs().size()},
          {"scale", ladder.rungs()[rung].plan.extension().scale},
          {"length", length}};
}

ordered_json prefill_json(const Prefill& prefill) {
  return {{"read", prefill.read},
          {"total", prefill.total},
          {"tokens_per_second", prefill.rate()},
          {"seconds_left", prefill.seconds_left()}};
}

ordered_json progress_json(const Prefill& prefill) {
  return {{"total", prefill.total + prefill.cached},
          {"cache", prefill.cached},
          {"processed", prefill.read + prefill.cached},
          {"time_ms", static_cast<std::int64_t>(1000 * prefill.seconds)}};
}

ordered_json timings_json(const Outcome& outcome) {
  const std::int64_t read = outcome.prompt - outcome.cached;
  // The first token comes with the last of the prompt: it costs no computation of its own.
  const std::int64_t steps = std::max<std::int64_t>(0, outcome.written - 1);
  const auto per_token = [](double seconds, std::int64_t count) {
    return count > 0 ? 1000 * seconds / static_cast<double>(count) : 0;
  };
  return {{"cache_n", outcome.cached},
          {"prompt_n", read},
          {"prompt_ms", 1000 * outcome.read_seconds},
          {"prompt_per_token_ms", per_token(outcome.read_seconds, read)},
          {"prompt_per_second", rate(read, outcome.read_seconds)},
          {"predicted_n", outcome.written},
          {"predicted_ms", 1000 * outcome.write_seconds},
          {"predicted_per_token_ms", per_token(outcome.write_seconds, steps)},
          {"predicted_per_second", rate(steps, outcome.write_seconds)}};
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

ordered_json bytes_json(const std::string& text) {
  ordered_json list = ordered_json::array();
  for (const char c : text) list.push_back(static_cast<unsigned char>(c));
  return list;
}

AnswerFormat::AnswerFormat(const AnswerFacts& facts, const CompletionRequest& request)
    : facts_(facts),
      logprobs_(request.logprobs.has_value()),
      progress_(request.return_progress),
      ignored_(request.ignored) {}

void AnswerFormat::event(std::string& out, const ordered_json& data) {
  out += cat("data: ", json_text(data), "\n\n");
}

ordered_json AnswerFormat::about(const Outcome& outcome) const {
  ordered_json out = place_json(facts_.ladder, outcome.rung, outcome.length);
  out["read_seconds"] = outcome.read_seconds;
  out["write_seconds"] = outcome.write_seconds;
  if (!ignored_.empty()) out["ignored"] = ignored_;
  return out;
}

ordered_json AnswerFormat::token_list(const std::vector<ChosenToken>& tokens, bool with_ids) const {
  const auto entry = [&](Token token, double logprob) {
    const std::string piece = facts_.model.piece(token);
    ordered_json one = with_ids ? ordered_json{{"id", token}} : ordered_json::object();
    one.update({{"token", piece}, {"logprob", logprob}, {"bytes", bytes_json(piece)}});
    return one;
  };
  ordered_json list = ordered_json::array();
  for (const ChosenToken& chosen : tokens) {
    ordered_json one = entry(chosen.token, chosen.logprob);
    one["top_logprobs"] = ordered_json::array();
    for (const auto& [token, logprob] : chosen.top) {
      one["top_logprobs"].push_back(entry(token, logprob));
    }
    list.push_back(std::move(one));
  }
  return list;
}

std::unique_ptr<AnswerFormat> make_format(const AnswerFacts& facts,
                                          const CompletionRequest& request) {
  switch (request.dialect) {
    case Dialect::llama_server:
      return make_llama_format(facts, request);
    case Dialect::responses:
      return make_responses_format(facts, request);
    case Dialect::ollama:
      return make_ollama_format(facts, request);
    default:
      return make_openai_format(facts, request);
  }
}

}  // namespace mrrope::serve
