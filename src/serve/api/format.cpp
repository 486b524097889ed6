// SPDX-License-Identifier: Apache-2.0
// What answers say, and what their shapes have in common.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/json.h"
#include "base/text.h"
#include "serve/api/service.h"

namespace mrrope::serve {

namespace {

const char* error_type(int status) {
  if (status == 401 || status == 403) return "authentication_error";
  if (status == 404) return "not_found_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

std::string hexadecimal(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

ordered_json json_or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

constexpr std::chrono::milliseconds kParseLimit{2000};

// What was added to a text. A parser may take back the end of what it made of an unfinished
// answer; nothing can be unsaid, so that waits until the text has grown past it.
std::string grown(std::string& before, const std::string& now) {
  if (now.size() <= before.size() || now.compare(0, before.size(), before) != 0) return {};
  std::string fresh = now.substr(before.size());
  before = now;
  return fresh;
}

// Whether a text may become the JSON of a call: a code fence, a brace or two, "name".
bool may_be_call(std::string text) {
  text = trimmed(text);
  for (const std::string_view fence : {"```json", "```"}) {
    if (fence.starts_with(text)) return true;
    if (!text.starts_with(fence)) continue;
    text = trimmed(text.substr(fence.size()));
    break;
  }
  for (int braces = 0; braces < 2 && text.starts_with('{'); ++braces) {
    text = trimmed(text.substr(1));
    if (std::string_view("\"name\"").starts_with(text) || text.starts_with("\"name\"")) return true;
  }
  return false;
}

std::optional<engine::ToolCall> call_of(const nlohmann::ordered_json& call,
                                        const std::vector<std::string>& tools) {
  if (!call.is_object() || !call.contains("name") || !call["name"].is_string()) return std::nullopt;
  const auto name = call["name"].get<std::string>();
  if (!has(tools, name)) return std::nullopt;
  const char* field = call.contains("arguments") ? "arguments" : "parameters";
  if (!call.contains(field) || !call[field].is_object()) return std::nullopt;
  return engine::ToolCall{{}, name, call[field].dump()};
}

// One call after another, with commas or nothing in between; none if there is anything else.
std::vector<engine::ToolCall> bare_calls(std::string text, const std::vector<std::string>& tools) {
  text = trimmed(text);
  if (text.starts_with("```")) {
    text.erase(0, text.starts_with("```json") ? 7 : 3);
    if (text.ends_with("```")) text.resize(text.size() - 3);
  }
  std::istringstream in(text);
  const auto skip = [&](char c) { return (in >> std::ws).peek() == c && in.get() == c; };
  std::vector<engine::ToolCall> calls;
  while ((in >> std::ws).peek() == '{') {
    // Qwen2.5-Coder's template shows a call in two pairs of braces.
    in.get();
    if (in.peek() != '{') in.unget();
    nlohmann::ordered_json object;
    try {
      in >> object;
    } catch (const nlohmann::json::exception&) {
      return {};
    }
    const auto call = call_of(object, tools);
    if (!call) return {};
    calls.push_back(*call);
    skip('}');
    skip(',');
  }
  return in.eof() ? calls : std::vector<engine::ToolCall>();
}

}  // namespace

AnswerReader::AnswerReader(engine::ChatRenderer& renderer, AnswerSyntax syntax,
                           std::uint64_t number)
    : renderer_(renderer), syntax_(std::move(syntax)), number_(number) {}

// An answer that was cut, or that is not what its template writes, is read as far as possible; the
// last resort is its text. One that cannot be read for want of a process fails.
engine::ParsedAnswer AnswerReader::parse(bool last) {
  const auto attempt = [&](bool partial) -> std::optional<engine::ParsedAnswer> {
    // What is not the end can be read again later.
    const auto until = std::chrono::steady_clock::now() + kParseLimit;
    const auto give_up = [&] { return !last && std::chrono::steady_clock::now() > until; };
    try {
      return renderer_.parse(syntax_.syntax, text_, partial, kParseLimit, give_up);
    } catch (const Error& error) {
      if (last && error.kind() == ErrorKind::out_of_memory) throw;
      return std::nullopt;
    }
  };
  if (const auto now = attempt(!last)) return *now;
  if (!last) return sent_;
  if (const auto now = attempt(true)) return *now;
  const bool silent = sent_.content.empty() && sent_.reasoning.empty() && sent_.calls.empty();
  return silent ? engine::ParsedAnswer{text_, {}, {}} : sent_;
}

Delta AnswerReader::add(const std::string& text, bool last) {
  Delta delta;
  if (!parses()) {
    delta.content = (begun_ ? "" : syntax_.echo) + text;
    begun_ = true;
    return delta;
  }
  const auto call_id = [&](std::size_t index) {
    return cat("call_", hexadecimal(number_), hexadecimal(index).substr(14));
  };
  if (!begun_ && syntax_.continues) sent_ = parse(false);
  begun_ = true;
  text_ += text;
  if (text_.empty()) return delta;
  engine::ParsedAnswer now = parse(last);
  if (!syntax_.tools.empty() && now.calls.empty() && sent_.content.empty() &&
      may_be_call(now.content)) {
    if (last) now.calls = bare_calls(now.content, syntax_.tools);
    if (!syntax_.parallel && now.calls.size() > 1) now.calls.resize(1);
    if (!now.calls.empty() || !last) now.content.clear();
  }
  delta.reasoning = grown(sent_.reasoning, now.reasoning);
  delta.content = grown(sent_.content, now.content);
  for (std::size_t i = 0; i < now.calls.size(); ++i) {
    const engine::ToolCall& call = now.calls[i];
    const bool opens = i >= sent_.calls.size();
    // The name is known when its arguments begin, or the next call, or when nothing more comes.
    if (opens && call.arguments.empty() && i + 1 == now.calls.size() && !last) break;
    if (opens) sent_.calls.push_back({});
    engine::ToolCall& before = sent_.calls[i];
    Delta::Call fresh{i, {}};
    if (opens) {
      before.id = fresh.call.id = call.id.empty() ? call_id(i) : call.id;
      before.name = fresh.call.name = call.name;
    }
    fresh.call.arguments = grown(before.arguments, call.arguments);
    if (opens || !fresh.call.arguments.empty()) delta.calls.push_back(std::move(fresh));
  }
  return delta;
}

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

ordered_json place_json(const Ladder& ladder, const Progress& now) {
  return {{"rung", now.rung},
          {"rungs", ladder.rungs().size()},
          {"scale", ladder.rungs()[now.rung].plan.extension().scale},
          {"length", now.length}};
}

ordered_json prefill_json(const Progress& now) {
  return {{"read", now.read},
          {"total", now.to_read()},
          {"tokens_per_second", now.reading_rate()},
          {"seconds_left", now.seconds_left()}};
}

ordered_json progress_json(const Progress& now) {
  return {{"total", now.prompt},
          {"cache", now.cached},
          {"processed", now.read + now.cached},
          {"time_ms", std::int64_t(1000 * now.read_seconds)},
          {"seconds_left", now.seconds_left()}};
}

ordered_json timings_json(const Outcome& outcome) {
  const std::int64_t read = outcome.prompt - outcome.cached;
  // The first token comes with the last of the prompt: it costs no computation of its own.
  const std::int64_t steps = std::max<std::int64_t>(0, outcome.written - 1);
  const auto per_token = [](double seconds, std::int64_t count) {
    return count > 0 ? 1000 * seconds / double(count) : 0;
  };
  const auto rate = [](std::int64_t count, double seconds) {
    return seconds > 0 ? double(count) / seconds : 0;
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

std::string prefill_text(const Progress& now, std::size_t rungs) {
  const bool whole = now.read == now.to_read();
  const std::string amount =
      whole ? cat("read a prompt of ", now.read, " tokens in ", duration_text(now.read_seconds))
            : cat("reading a prompt: ", now.read, " of ", now.to_read(), " tokens");
  const std::string left =
      whole ? std::string() : cat(", ", duration_text(now.seconds_left()), " left");
  return cat(amount, ", ", significant(now.reading_rate(), 3), " tokens/s", left, ", rung ",
             now.rung + 1, " of ", rungs);
}

void add_use(Progress& use, const Progress& answer) {
  use.prompt += answer.prompt;
  use.cached += answer.cached;
  use.written += answer.written;
  use.length += answer.length;
  use.rung = std::max(use.rung, answer.rung);
}

// No JSON value is made for it: each needs memory.
std::string log_line(const Progress& use, const std::string& route, double milliseconds, int status,
                     bool json) {
  const std::string time = time_text(std::time(nullptr)), took = fixed(milliseconds, 1);
  const bool on_ladder = use.length > 0;  // embeddings are not
  if (!json) {
    std::string line = cat(time, " ", route, ": ", status, ", ", took, " ms");
    if (use.prompt > 0) line += cat(", ", use.prompt, " tokens in, ", use.cached, " cached");
    if (on_ladder) line += cat(", ", use.written, " out, rung ", use.rung + 1);
    return line;
  }
  const std::size_t space = route.find(' ');
  return cat(R"({"time":")", time, R"(","method":")", route.substr(0, space), R"(","route":")",
             route.substr(space + 1), R"(","in":)", use.prompt, R"(,"cached":)", use.cached,
             R"(,"out":)", use.written, R"(,"ms":)", took, R"(,"rung":)",
             on_ladder ? std::to_string(use.rung) : "null", R"(,"status":)", status, "}");
}

ordered_json bytes_json(const std::string& text) {
  ordered_json list = ordered_json::array();
  for (const char c : text) list.push_back(static_cast<unsigned char>(c));
  return list;
}

std::optional<ordered_json> arguments_of(const engine::ToolCall& call, const Outcome& outcome) {
  const bool none = call.arguments.empty();
  if (none && outcome.end == Outcome::End::length) return std::nullopt;
  auto read = ordered_json::parse(none ? "{}" : call.arguments, nullptr, false);
  return read.is_object() ? std::optional(std::move(read)) : std::nullopt;
}

AnswerFormat::AnswerFormat(const Basis& basis)
    : service_(basis.service),
      request_(basis.request),
      id_(hexadecimal(basis.number)),
      created_(std::int64_t(std::time(nullptr))) {}

void AnswerFormat::event(std::string& out, const ordered_json& data) {
  out += cat("data: ", json_text(data), "\n\n");
}

void AnswerFormat::progress(std::string& out, int index, const Progress& now) {
  if (request_.return_progress) return progress_event(out, index, now);
  ordered_json place = place_json(service_.ladder, now);
  place["prefill"] = prefill_json(now);
  out += cat(": ", json_text(ordered_json{{"mrrope", std::move(place)}}), "\n\n");
}

ordered_json AnswerFormat::about(const Outcome& outcome) const {
  ordered_json out = place_json(service_.ladder, outcome);
  out["read_seconds"] = outcome.read_seconds;
  out["write_seconds"] = outcome.write_seconds;
  if (!request_.ignored.empty()) out["ignored"] = request_.ignored;
  return out;
}

ordered_json AnswerFormat::token_list(const std::vector<ChosenToken>& tokens, bool with_ids) const {
  const auto entry = [&](Token token, double logprob) {
    const std::string piece = service_.model.piece(token);
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

std::unique_ptr<AnswerFormat> make_format(const AnswerFormat::Basis& basis) {
  const Route route = basis.request.route;
  MakeFormat* make = make_openai_format;
  if (route == Route::llama_completion) make = make_llama_format;
  if (route == Route::responses) make = make_responses_format;
  if (route == Route::ollama_chat || route == Route::ollama_generate) make = make_ollama_format;
  if (route == Route::messages) make = make_anthropic_format;
  return make(basis);
}

}  // namespace mrrope::serve
