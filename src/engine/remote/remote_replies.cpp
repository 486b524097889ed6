// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "base/files/source.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/remote/remote.h"

namespace mrrope::engine {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxModels = 1000;
constexpr std::size_t kMaxNameBytes = 500;
constexpr double kMaxWait = 300;
// Tokens of one request: a larger number cannot be right.
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;

[[noreturn]] void broken(const std::string& what) {
  throw Error(ErrorKind::corrupt, cat("the server's reply ", what));
}

json object(const std::string& body) {
  json value =
      parse_json(body, "the server's reply", {.bytes = std::uint64_t{256} << 20, .depth = 32});
  if (!value.is_object()) broken("is not a JSON object");
  return value;
}

const json& list(const json& value, const char* key) {
  const auto it = value.find(key);
  if (it == value.end() || !it->is_array()) broken(cat("has no list \"", key, "\""));
  return *it;
}

std::optional<std::int64_t> count_in(const json& value, const char* key) {
  const auto it = value.find(key);
  if (it == value.end() || it->is_null()) return std::nullopt;
  if (!it->is_number_integer()) return -1;  // given, but not a count
  if (it->is_number_unsigned() && it->get<std::uint64_t>() > std::uint64_t(kMaxTokens)) return -1;
  return std::max<std::int64_t>(-1, it->get<std::int64_t>());
}

std::int64_t count_or_zero(const json& value, const char* key) {
  return std::max<std::int64_t>(0, count_in(value, key).value_or(0));
}

}  // namespace

std::vector<RemoteModelInfo> parse_models(const std::string& body) {
  const json reply = object(body);
  std::vector<RemoteModelInfo> models;
  for (const json& entry : list(reply, "data")) {
    if (models.size() == kMaxModels) break;
    RemoteModelInfo model;
    model.name = text_at(entry, "id");
    if (model.name.empty() || model.name.size() > kMaxNameBytes) {
      broken("lists a model without a usable name");
    }
    model.owner = printable(text_at(entry, "owned_by").substr(0, 60));
    model.context = count_or_zero(entry, "max_model_len");
    if (entry.contains("meta") && entry["meta"].is_object()) {
      model.trained = count_or_zero(entry["meta"], "n_ctx_train");
    }
    models.push_back(std::move(model));
  }
  if (models.empty()) broken("lists no model");
  return models;
}

std::int64_t parse_props_context(const std::string& body) {
  const json reply = object(body);
  const auto settings = reply.find("default_generation_settings");
  if (settings == reply.end() || !settings->is_object()) return 0;
  return count_or_zero(*settings, "n_ctx");
}

RemoteAnswer parse_answer(const std::string& body, bool chat) {
  const json reply = object(body);
  const json& choices = list(reply, "choices");
  if (choices.empty() || !choices[0].is_object()) broken("has no choice");
  const json& choice = choices[0];
  RemoteAnswer answer;
  const json holder = chat ? choice.value("message", json()) : choice;
  const auto text = holder.find(chat ? "content" : "text");  // end() if it is not an object
  if (text == holder.end() || !(text->is_string() || (chat && text->is_null()))) {
    broken("has no text");
  }
  if (text->is_string()) answer.text = text->get<std::string>();
  answer.finish = printable(text_at(choice, "finish_reason").substr(0, 40));
  if (answer.finish.empty()) broken("does not say why it ended");
  if (const auto usage = reply.find("usage"); usage != reply.end() && usage->is_object()) {
    answer.prompt_tokens = count_in(*usage, "prompt_tokens");
    answer.answer_tokens = count_in(*usage, "completion_tokens");
  }
  return answer;
}

std::vector<Token> parse_tokens(const std::string& body) {
  const json reply = object(body);
  std::vector<Token> tokens;
  const json& entries = list(reply, "tokens");
  tokens.reserve(entries.size());
  for (const json& entry : entries) {
    if (!entry.is_number_unsigned() ||
        entry.get<std::uint64_t>() > std::uint64_t(std::numeric_limits<Token>::max())) {
      broken("has a token that is not a vocabulary index");
    }
    tokens.push_back(entry.get<Token>());
  }
  return tokens;
}

std::string parse_text(const std::string& body) {
  const json reply = object(body);
  for (const char* key : {"content", "prompt", "text"}) {
    const auto it = reply.find(key);
    if (it != reply.end() && it->is_string()) return it->get<std::string>();
  }
  broken("has no text");
}

std::string error_text(const std::string& body) {
  const json reply = json::parse(body.substr(0, 1 << 16), nullptr, false);
  const json& at = reply.contains("error") ? reply["error"] : reply;
  std::string text = at.is_string() ? at.get<std::string>() : text_at(at, "detail");
  if (text.empty()) text = text_at(at, "message");
  return printable((text.empty() ? body : text).substr(0, 200));
}

double retry_after_seconds(const std::string& header, std::int64_t now) {
  std::optional<double> seconds = parse_double(header);
  std::tm parts{};
  if (!seconds && strptime(header.c_str(), "%a, %d %b %Y %H:%M:%S", &parts) != nullptr) {
    seconds = double(timegm(&parts) - now);
  }
  return std::clamp(seconds.value_or(0), 0.0, kMaxWait);
}

}  // namespace mrrope::engine
