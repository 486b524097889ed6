// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/text.h"
#include "serve/api/service.h"

namespace mrrope::serve {

std::string metrics_text(const SchedulerCounts& counts,
                         const std::map<int, std::uint64_t>& responses, double uptime_seconds) {
  std::string out;
  const auto head = [&](const char* name, const char* type, const char* help) {
    out += cat("# HELP mrrope_", name, " ", help, "\n# TYPE mrrope_", name, " ", type, "\n");
  };
  const auto one = [&](const char* name, const char* type, const char* help, auto value) {
    head(name, type, help);
    out += cat("mrrope_", name, " ", value, "\n");
  };
  head("http_responses_total", "counter", "Responses by status.");
  for (const auto& [status, count] : responses) {
    out += cat("mrrope_http_responses_total{code=\"", status, "\"} ", count, "\n");
  }
  head("answers_total", "counter", "Answers by how they ended.");
  static constexpr std::pair<Outcome::End, const char*> kEnds[] = {
      {Outcome::End::stop, "stop"},           {Outcome::End::length, "length"},
      {Outcome::End::cancelled, "cancelled"}, {Outcome::End::timeout, "timeout"},
      {Outcome::End::refused, "refused"},     {Outcome::End::failed, "failed"}};
  for (const auto& [end, name] : kEnds) {
    const auto it = counts.ended.find(end);
    out += cat("mrrope_answers_total{end=\"", name, "\"} ",
               it == counts.ended.end() ? 0 : it->second, "\n");
  }
  one("prompt_tokens_total", "counter", "Prompt tokens computed.", counts.prompt_tokens);
  one("cached_tokens_total", "counter", "Prompt tokens found in the cache.", counts.cached_tokens);
  one("completion_tokens_total", "counter", "Tokens written.", counts.written_tokens);
  one("computations_total", "counter", "Batches computed.", counts.computations);
  one("computed_tokens_total", "counter", "Tokens in those batches.", counts.computed_tokens);
  one("rung_turns_total", "counter", "Times that cached keys were turned to another rung.",
      counts.turns);
  one("busy_seconds_total", "counter", "Seconds spent computing.", counts.busy_seconds);
  one("slots", "gauge", "Most conversations computed at the same time.", counts.slots);
  one("slots_busy", "gauge", "Conversations being computed.", counts.slots_busy);
  one("queue", "gauge", "Requests waiting for a slot.", counts.queued);
  one("uptime_seconds", "gauge", "Seconds since the start.", uptime_seconds);
  return out;
}

}  // namespace mrrope::serve
