// SPDX-License-Identifier: Apache-2.0
#include "serve/api/request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::serve {

namespace {

using nlohmann::json;

constexpr int kBad = 400;
constexpr std::size_t kMostStops = 16;
constexpr std::size_t kLongestStop = 1024;  // bytes
constexpr std::size_t kMostMessages = 16384;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;

[[noreturn]] void refuse(const std::string& field, const std::string& why,
                         const std::string& code = {}) {
  throw ApiError(kBad, cat("'", field, "' ", why), field, code);
}

// Enough of a value to recognize it.
std::string shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return cat("a list of ", value.size());
  if (value.is_string() && value.get_ref<const std::string&>().size() > 40) return "a long string";
  return value.dump(-1, ' ', true, json::error_handler_t::replace);
}

// The fields of a body. Those that are never looked up are ignored.
class Fields {
 public:
  Fields(std::string_view body, const BodyLimits& limits) {
    JsonLimits json_limits;
    json_limits.bytes = limits.bytes;
    json_limits.values = limits.values;
    try {
      root_ = parse_json(body, "the body", json_limits);
    } catch (const Error& error) {
      throw ApiError(kBad, error.what(), {}, "invalid_json");
    }
    if (!root_.is_object()) {
      throw ApiError(kBad, cat("the body must be a JSON object, not ", shown(root_)), {},
                     "invalid_json");
    }
  }

  // Null counts as absent: many clients send it for a field that is not set.
  const json* find(const char* name) {
    asked_.insert(name);
    const auto it = root_.find(name);
    return it == root_.end() || it->is_null() ? nullptr : &*it;
  }

  std::optional<std::string> text(const char* name) {
    const json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) refuse(name, cat("must be a string, not ", shown(*value)));
    return value->get<std::string>();
  }

  bool flag(const char* name, bool otherwise = false) {
    const json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(name, cat("must be true or false, not ", shown(*value)));
    return value->get<bool>();
  }

  std::optional<double> number(const char* name, double low, double high) {
    const json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) refuse(name, cat("must be a number, not ", shown(*value)));
    const double v = value->get<double>();
    if (!(v >= low && v <= high)) {
      refuse(name, cat("must be between ", low, " and ", high, ", not ", shown(*value)));
    }
    return v;
  }

  std::optional<std::int64_t> whole(const char* name, std::int64_t low, std::int64_t high) {
    const auto v = number(name, static_cast<double>(low), static_cast<double>(high));
    if (!v) return std::nullopt;
    if (*v != std::floor(*v)) refuse(name, cat("must be a whole number, not ", *v));
    return static_cast<std::int64_t>(*v);
  }

  // Refuses a field that is not supported unless its value changes nothing.
  void only(const char* name, const json& neutral, const char* why) {
    const json* value = find(name);
    if (value == nullptr || *value == neutral) return;
    if ((value->is_array() || value->is_object()) && value->empty()) return;
    if (value->is_string() && value->get_ref<const std::string&>().empty()) return;
    refuse(name, cat("is not supported: ", why), "unsupported_parameter");
  }

  std::vector<std::string> ignored() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : root_.items()) {
      constexpr std::size_t kMostNames = 32;
      constexpr std::size_t kLongestName = 64;
      if (asked_.count(name) != 0 || names.size() == kMostNames) continue;
      names.push_back(name.size() <= kLongestName ? name : "(a long name)");
    }
    return names;
  }

 private:
  json root_;
  std::set<std::string, std::less<>> asked_;
};

std::vector<Token> token_list(const json& list, const char* field) {
  std::vector<Token> tokens;
  for (const json& entry : list) {
    if (!entry.is_number_integer() || entry < 0 || entry > std::numeric_limits<Token>::max()) {
      refuse(field, cat("must list tokens as whole numbers from 0, not ", shown(entry)));
    }
    tokens.push_back(entry.get<Token>());
  }
  return tokens;
}

void read_prompt(Fields& fields, CompletionRequest& request) {
  const json* prompt = fields.find("prompt");
  if (prompt == nullptr) refuse("prompt", "is missing: give the text to continue");
  if (prompt->is_array() && prompt->size() == 1 && !prompt->front().is_number()) {
    prompt = &prompt->front();
  }
  if (prompt->is_string()) {
    request.prompt = prompt->get<std::string>();
    return;
  }
  if (!prompt->is_array() || prompt->empty()) {
    refuse("prompt", cat("must be a string or a list of tokens, not ", shown(*prompt)));
  }
  if (!prompt->front().is_number()) {
    refuse("prompt", cat("is ", shown(*prompt), ": send one prompt per request"));
  }
  request.prompt_tokens = token_list(*prompt, "prompt");
}

// A string, or a list of text parts.
std::string read_content(const json& content, const std::string& field) {
  if (content.is_null()) return {};
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    refuse(field, cat("must be a string or a list of text parts, not ", shown(content)));
  }
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const json& part = content[i];
    const std::string name = cat(field, "[", i, "]");
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) {
      refuse(name, "must be an object with a type");
    }
    const auto& type = part["type"].get_ref<const std::string&>();
    if (type != "text") {
      refuse(name, cat("is of type ", shown(part["type"]), ": only text is supported"),
             "unsupported_content");
    }
    if (!part.contains("text") || !part["text"].is_string()) refuse(name, "has no text");
    if (i > 0) text += '\n';
    text += part["text"].get_ref<const std::string&>();
  }
  return text;
}

void read_messages(Fields& fields, CompletionRequest& request) {
  const json* messages = fields.find("messages");
  if (messages == nullptr) refuse("messages", "is missing: give at least one message");
  if (!messages->is_array() || messages->empty() || messages->size() > kMostMessages) {
    refuse("messages",
           cat("must be a list of 1 to ", kMostMessages, " messages, not ", shown(*messages)));
  }
  static constexpr std::array kRoles = {"system", "developer", "user", "assistant"};
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const json& message = (*messages)[i];
    const std::string name = cat("messages[", i, "]");
    if (!message.is_object()) refuse(name, cat("must be an object, not ", shown(message)));
    if (!message.contains("role") || !message["role"].is_string()) refuse(name, "has no role");
    const auto& role = message["role"].get_ref<const std::string&>();
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
      refuse(name + ".role",
             cat("is ", shown(message["role"]), ": choose system, developer, user or assistant"));
    }
    for (const char* field : {"tool_calls", "function_call", "audio"}) {
      if (message.contains(field) && !message[field].is_null() && !message[field].empty()) {
        refuse(cat(name, ".", field), "is not supported: only text is", "unsupported_content");
      }
    }
    const bool has_content = message.contains("content") && !message["content"].is_null();
    if (!has_content && role != "assistant") refuse(name + ".content", "is missing");
    request.messages.push_back(
        {role, has_content ? read_content(message["content"], name + ".content") : ""});
  }
}

void read_stop(Fields& fields, CompletionRequest& request) {
  const json* stop = fields.find("stop");
  if (stop == nullptr) return;
  const json list = stop->is_array() ? *stop : json::array({*stop});
  if (list.size() > kMostStops) {
    refuse("stop", cat("lists ", list.size(), " strings: at most ", kMostStops));
  }
  for (const json& entry : list) {
    if (!entry.is_string()) refuse("stop", cat("must hold strings, not ", shown(entry)));
    request.stop.push_back(entry.get<std::string>());
    const std::size_t size = request.stop.back().size();
    if (size == 0 || size > kLongestStop) {
      refuse("stop", cat("holds a string of ", size, " bytes: 1 to ", kLongestStop));
    }
  }
}

struct Unsupported {
  const char* name;
  json neutral;  // null and empty strings, lists and objects pass as well
  const char* why;
};

// Fields of OpenAI, llama-server and vLLM that would change the answer. Companions that mean
// nothing without them (mirostat_tau, repeat_last_n, tool_choice, ...) are ignored.
const std::vector<Unsupported>& unsupported() {
  constexpr const char* kPenalties = "repetition is not penalized here";
  constexpr const char* kSamplers = "use temperature, top_k, top_p and min_p";
  constexpr const char* kGuided = "answers are not constrained to a grammar";
  constexpr const char* kTemplate = "chats use the model's template as it is";
  constexpr const char* kEnds = "an answer ends at the model's end of text, 'stop' or max_tokens";
  static const std::vector<Unsupported> list = {
      {"frequency_penalty", 0, kPenalties},
      {"presence_penalty", 0, kPenalties},
      {"repeat_penalty", 1, kPenalties},
      {"repetition_penalty", 1, kPenalties},
      {"dry_multiplier", 0, kPenalties},
      {"no_repeat_ngram_size", 0, kPenalties},
      {"mirostat", 0, kSamplers},
      {"typical_p", 1, kSamplers},
      {"tfs_z", 1, kSamplers},
      {"top_a", 0, kSamplers},
      {"top_n_sigma", -1, kSamplers},
      {"xtc_probability", 0, kSamplers},
      {"dynatemp_range", 0, kSamplers},
      {"samplers", nullptr, kSamplers},
      {"use_beam_search", false, kSamplers},
      {"length_penalty", 1, kSamplers},
      {"logit_bias", nullptr, "logits are not changed"},
      {"allowed_token_ids", nullptr, "logits are not changed"},
      {"bad_words", nullptr, "logits are not changed"},
      {"logits_processors", nullptr, "logits are not changed"},
      {"grammar", "", kGuided},
      {"json_schema", nullptr, kGuided},
      {"guided_json", nullptr, kGuided},
      {"guided_regex", nullptr, kGuided},
      {"guided_choice", nullptr, kGuided},
      {"guided_grammar", nullptr, kGuided},
      {"structured_outputs", nullptr, kGuided},
      {"response_format", json{{"type", "text"}}, kGuided},
      {"ignore_eos", false, kEnds},
      {"min_tokens", 0, kEnds},
      {"stop_token_ids", nullptr, kEnds},
      {"include_stop_str_in_output", false, "an answer ends before the stop string"},
      {"prompt_logprobs", nullptr, "log-probabilities are those of the answer"},
      {"truncate_prompt_tokens", nullptr, "prompts are not truncated"},
      {"lora", nullptr, "the model is served as it is"},
      {"lora_adapters", nullptr, "the model is served as it is"},
      {"image_data", nullptr, "only text is supported"},
      {"multimodal_data", nullptr, "only text is supported"},
      {"chat_template", nullptr, kTemplate},
      {"chat_template_kwargs", nullptr, kTemplate},
      {"continue_final_message", false, kTemplate},
      {"add_generation_prompt", true, kTemplate}};
  return list;
}

void read_common(Fields& fields, CompletionRequest& request) {
  request.model = fields.text("model").value_or("");
  Sampling& s = request.sampling;
  s.temperature = fields.number("temperature", 0, 100).value_or(1);
  s.top_p = fields.number("top_p", 0, 1).value_or(1);
  s.min_p = fields.number("min_p", 0, 1).value_or(0);
  s.top_k = static_cast<int>(fields.whole("top_k", -1, 1 << 30).value_or(0));
  if (s.top_k < 0) s.top_k = 0;  // vLLM's way to say "all"
  if (const auto seed = fields.whole("seed", std::numeric_limits<std::int32_t>::min(),
                                     std::numeric_limits<std::uint32_t>::max())) {
    s.seed = static_cast<std::uint32_t>(*seed);
    request.has_seed = true;
  }
  request.length = fields.whole("max_tokens", 1, kMostTokens);
  // llama-server's name for it; -1 is up to the end of the context.
  if (const auto length = fields.whole("n_predict", -1, kMostTokens)) {
    if (*length == 0) refuse("n_predict", "must be -1 or at least 1, not 0");
    if (!request.length) request.length = *length < 0 ? kMostTokens : *length;
  }
  request.cache_prompt = fields.flag("cache_prompt", true);
  read_stop(fields, request);
  request.stream = fields.flag("stream");
  if (const json* options = fields.find("stream_options")) {
    if (!options->is_object()) refuse("stream_options", "must be an object");
    const json usage = options->value("include_usage", json(nullptr));
    if (!usage.is_null() && !usage.is_boolean()) {
      refuse("stream_options.include_usage", "must be true or false");
    }
    request.stream_usage = usage == true;
  }
  fields.only("n", 1, "one answer per request");
  fields.only("best_of", 1, "one answer per request");
  for (const auto& [name, neutral, why] : unsupported()) fields.only(name, neutral, why);
}

}  // namespace

CompletionRequest parse_completion(std::string_view body, const BodyLimits& limits) {
  Fields fields(body, limits);
  CompletionRequest request;
  read_prompt(fields, request);
  read_common(fields, request);
  if (const auto top = fields.whole("logprobs", 0, 20)) request.logprobs = static_cast<int>(*top);
  fields.only("echo", false, "the answer does not repeat the prompt");
  fields.only("suffix", "", "text can only be continued at its end");
  request.ignored = fields.ignored();
  return request;
}

CompletionRequest parse_chat(std::string_view body, const BodyLimits& limits) {
  Fields fields(body, limits);
  CompletionRequest request;
  request.chat = true;
  read_messages(fields, request);
  read_common(fields, request);
  if (const auto length = fields.whole("max_completion_tokens", 1, kMostTokens)) {
    request.length = length;
  }
  const auto top = fields.whole("top_logprobs", 0, 20);
  if (fields.flag("logprobs")) {
    request.logprobs = static_cast<int>(top.value_or(0));
  } else if (top) {
    refuse("top_logprobs", "needs 'logprobs' to be true");
  }
  fields.only("tools", nullptr, "tool calling is not available");
  fields.only("functions", nullptr, "function calling is not available");
  fields.only("audio", nullptr, "answers are text");
  fields.only("modalities", json::array({"text"}), "answers are text");
  request.ignored = fields.ignored();
  return request;
}

TokenizeRequest parse_tokenize(std::string_view body, const BodyLimits& limits) {
  Fields fields(body, limits);
  TokenizeRequest request;
  const auto content = fields.text("content");
  if (!content) refuse("content", "is missing: give the text to tokenize");
  request.content = *content;
  request.add_special = fields.flag("add_special", false);
  request.parse_special = fields.flag("parse_special", true);
  return request;
}

std::vector<Token> parse_detokenize(std::string_view body, const BodyLimits& limits) {
  Fields fields(body, limits);
  const json* tokens = fields.find("tokens");
  if (tokens == nullptr) refuse("tokens", "is missing: give a list of tokens");
  if (!tokens->is_array()) refuse("tokens", cat("must be a list, not ", shown(*tokens)));
  return token_list(*tokens, "tokens");
}

}  // namespace mrrope::serve
