// SPDX-License-Identifier: Apache-2.0
#include "serve/api/format.h"

#include "base/text.h"
#include "serve/dialects/dialects.h"

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

const char* finish_reason(const Outcome& outcome, bool calls) {
  if (outcome.end == Outcome::End::length) return "length";
  return calls ? "tool_calls" : "stop";
}

ordered_json usage_json(const std::vector<Outcome>& outcomes) {
  std::int64_t prompt = 0, cached = 0, written = 0;
  for (const Outcome& outcome : outcomes) {
    prompt = outcome.prompt;
    cached = &outcome == outcomes.data() ? outcome.cached : std::min(cached, outcome.cached);
    written += outcome.written;
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

ordered_json about_json(const Ladder& ladder, const Outcome& outcome,
                        const std::vector<std::string>& ignored) {
  ordered_json out = place_json(ladder, outcome.rung, outcome.length);
  out["read_seconds"] = outcome.read_seconds;
  out["write_seconds"] = outcome.write_seconds;
  if (!ignored.empty()) out["ignored"] = ignored;
  return out;
}

ordered_json progress_json(const Prefill& prefill) {
  return {{"total", prefill.total + prefill.cached},
          {"cache", prefill.cached},
          {"processed", prefill.read + prefill.cached},
          {"time_ms", static_cast<std::int64_t>(1000 * prefill.seconds)}};
}

ordered_json timings_json(const Outcome& outcome) {
  const std::int64_t read = outcome.prompt - outcome.cached;
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
          {"predicted_per_token_ms", per_token(outcome.write_seconds, outcome.written)},
          {"predicted_per_second", rate(outcome.written, outcome.write_seconds)}};
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

std::unique_ptr<AnswerFormat> make_format(const AnswerFacts& facts,
                                          const CompletionRequest& request) {
  switch (request.dialect) {
    case Dialect::llama_server:
      return make_llama_format(facts, request);
    case Dialect::ollama:
      return make_ollama_format(facts, request);
    default:
      return make_openai_format(facts, request);
  }
}

}  // namespace mrrope::serve
