// SPDX-License-Identifier: Apache-2.0
#include "serve/api/answer_reader.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::serve {

namespace {

constexpr std::chrono::milliseconds kParseLimit{2000};

// What was added to a text. A parser may take back the end of what it made of an unfinished
// answer; nothing can be unsaid, so that waits until the text has grown past it.
std::string grown(std::string& before, const std::string& now) {
  if (now.size() <= before.size() || now.compare(0, before.size(), before) != 0) return {};
  std::string fresh = now.substr(before.size());
  before = now;
  return fresh;
}

std::string call_id(std::uint64_t number, std::size_t index) {
  char id[40];
  std::snprintf(id, sizeof id, "call_%016llx%02zx", static_cast<unsigned long long>(number), index);
  return id;
}

std::string_view without_space(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Whether a text may become the JSON of a call: a code fence, a brace or two, "name".
bool may_be_call(std::string_view text) {
  text = without_space(text);
  for (const std::string_view fence : {"```json", "```"}) {
    if (fence.starts_with(text)) return true;
    if (!text.starts_with(fence)) continue;
    text = without_space(text.substr(fence.size()));
    break;
  }
  for (int braces = 0; braces < 2 && !text.empty() && text.front() == '{'; ++braces) {
    text = without_space(text.substr(1));
    if (std::string_view("\"name\"").starts_with(text) || text.starts_with("\"name\"")) return true;
  }
  return false;
}

std::optional<engine::ToolCall> call_of(const nlohmann::ordered_json& call,
                                        const std::vector<std::string>& tools) {
  if (!call.is_object() || !call.contains("name") || !call["name"].is_string()) return std::nullopt;
  const auto name = call["name"].get<std::string>();
  if (std::find(tools.begin(), tools.end(), name) == tools.end()) return std::nullopt;
  const char* field = call.contains("arguments") ? "arguments" : "parameters";
  if (!call.contains(field) || !call[field].is_object()) return std::nullopt;
  return engine::ToolCall{{}, name, call[field].dump()};
}

// One call after another, with commas or nothing in between; none if there is anything else.
std::vector<engine::ToolCall> bare_calls(std::string_view text,
                                         const std::vector<std::string>& tools) {
  text = without_space(text);
  if (text.starts_with("```")) {
    text.remove_prefix(text.starts_with("```json") ? 7 : 3);
    if (text.ends_with("```")) text.remove_suffix(3);
  }
  std::istringstream in{std::string(text)};
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
  engine::ParsedAnswer whole = sent_;
  const bool nothing = sent_.content.empty() && sent_.reasoning.empty() && sent_.calls.empty();
  if (nothing) whole.content = text_;
  return whole;
}

Delta AnswerReader::add(const std::string& text, bool last) {
  Delta delta;
  if (!parses()) {
    if (!begun_) delta.content = syntax_.echo;
    begun_ = true;
    delta.content += text;
    return delta;
  }
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
      before.id = fresh.call.id = call.id.empty() ? call_id(number_, i) : call.id;
      before.name = fresh.call.name = call.name;
    }
    fresh.call.arguments = grown(before.arguments, call.arguments);
    if (opens || !fresh.call.arguments.empty()) delta.calls.push_back(std::move(fresh));
  }
  return delta;
}

}  // namespace mrrope::serve
