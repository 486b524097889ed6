// SPDX-License-Identifier: Apache-2.0
// Requests are read by a table of every known field: of OpenAI's completions, chats and responses,
// of llama-server, vLLM and ollama. fields.md is that table, and docs/serve.md shows it.
#include <algorithm>
#include <functional>
#include <map>
#include <sstream>

#include "base/text.h"
#include "serve/api/fields.h"
#include "serve/serve_files.h"

namespace mrrope::serve {

namespace {

constexpr unsigned mask(Route route) { return static_cast<unsigned>(route); }
constexpr unsigned kText = mask(Route::completion);
constexpr unsigned kChat = mask(Route::chat);
constexpr unsigned kLlama = mask(Route::llama_completion);
constexpr unsigned kOpenAi = kText | kChat | mask(Route::responses) | kLlama;
constexpr unsigned kOllama = mask(Route::ollama_chat) | mask(Route::ollama_generate);
constexpr unsigned kAnywhere = ~0U;

constexpr int kMaxChoices = 16;  // to a prompt
constexpr double kMaxPenalty = 100;

using Read = std::function<void(const Value&, CompletionRequest&)>;

struct Field {
  std::string name;
  unsigned routes = 0;
  std::string refused = {};        // why; empty: it is accepted
  ordered_json neutral = nullptr;  // passes where it is refused, as empty values do
  Read read = {};                  // empty: the route reads it
};

// A text, llama-server's object with one, or a list of tokens and texts.
std::vector<PromptPart> one_prompt(const ordered_json& prompt) {
  if (prompt.is_string()) return {{prompt.get<std::string>(), {}}};
  if (prompt.is_object()) {
    if (prompt.size() != 1 || !prompt.contains("prompt_string") ||
        !prompt["prompt_string"].is_string()) {
      refuse("prompt", cat("must be {\"prompt_string\": TEXT}, not ", shown(prompt),
                           ": only text is supported"));
    }
    return {{prompt["prompt_string"].get<std::string>(), {}}};
  }
  if (!prompt.is_array() || prompt.empty()) {
    refuse("prompt", cat("must be a string or a list of tokens, not ", shown(prompt)));
  }
  std::vector<PromptPart> parts;
  for (const ordered_json& part : prompt) {
    if (part.is_string()) {
      parts.push_back({part.get<std::string>(), {}});
    } else {
      if (parts.empty() || parts.back().tokens.empty()) parts.emplace_back();
      parts.back().tokens.push_back(token_of(part, "prompt"));
    }
  }
  return parts;
}

// One prompt, or a list of them: a list with a number in it is one prompt.
void read_prompts(const Value& prompt, CompletionRequest& request) {
  constexpr std::size_t kMaxPrompts = 64;
  const ordered_json& json = prompt.json();
  if (!json.is_array() || json.empty() ||
      std::any_of(json.begin(), json.end(), [](const auto& part) { return part.is_number(); })) {
    request.prompts.push_back(one_prompt(json));
    return;
  }
  if (json.size() > kMaxPrompts) {
    prompt.refuse(cat("lists ", json.size(), " prompts: at most ", kMaxPrompts));
  }
  for (const ordered_json& one : json) request.prompts.push_back(one_prompt(one));
}

void read_reasoning_format(const Value& format, CompletionRequest& request) {
  request.conversation.split_reasoning = format.choice({"auto", "deepseek", "none"}) != "none";
}

void read_salt(const Value& salt, CompletionRequest& request) {
  request.cache_salt = salt.text();
  if (request.cache_salt.empty()) salt.refuse("is empty: give some text, or leave it out");
}

void read_stream_options(const Value& options, CompletionRequest& request) {
  request.stream_usage = options.object().at("include_usage").flag_or(false);
}

Read number(double low, double high, double Sampling::*into) {
  return [=](const Value& v, CompletionRequest& r) { r.sampling.*into = v.number(low, high); };
}
Read flag(bool CompletionRequest::*into) {
  return [=](const Value& v, CompletionRequest& r) { r.*into = v.flag(); };
}

// How accepted fields are read. Those that are not here are read by their route.
std::vector<Field> readers() {
  using V = const Value&;
  using R = CompletionRequest&;
  const Read length = [](V v, R r) { r.length = read_length(v); };
  const Read answers = [](V v, R r) { r.answers = static_cast<int>(v.whole(1, kMaxChoices)); };
  const Read penalty = number(0.01, kMaxPenalty, &Sampling::repeat_penalty);
  const auto add = [](const char* name, const Read& read, unsigned routes = kAnywhere) {
    return Field{name, routes, {}, nullptr, read};
  };
  return {
      add("model", [](V v, R r) { r.model = v.text(); }),
      add("prompt", read_prompts, kText | kLlama),
      add("messages", read_messages, kChat),
      add("n_predict", length),
      add("max_tokens", length),
      add("max_completion_tokens", length),
      add("max_output_tokens", [](V v, R r) { r.length = v.whole(1, kMaxTokens); }),
      add("stop", read_stop),
      add("ignore_eos", [](V v, R r) { r.sampling.ignore_end = v.flag(); }),
      add("temperature", number(0, 100, &Sampling::temperature)),
      add("top_k",
          [](V v, R r) {  // -1 is vLLM's way to say "all"
            r.sampling.top_k = std::max(0, static_cast<int>(v.whole(-1, 1 << 30)));
          }),
      add("top_p", number(0, 1, &Sampling::top_p)),
      add("min_p", number(0, 1, &Sampling::min_p)),
      add("typical_p", number(0, 1, &Sampling::typical_p)),
      add("seed", read_seed),
      add("frequency_penalty", number(-kMaxPenalty, kMaxPenalty, &Sampling::frequency_penalty)),
      add("presence_penalty", number(-kMaxPenalty, kMaxPenalty, &Sampling::presence_penalty)),
      add("repeat_penalty", penalty),
      add("repetition_penalty", penalty),
      add("repeat_last_n",
          [](V v, R r) { r.sampling.repeat_last_n = static_cast<int>(v.whole(-1, 1 << 30)); }),
      add("logit_bias", read_bias),
      add("n", answers),
      add("n_cmpl", answers),
      add("n_probs",
          [](V v, R r) {  // 0: none
            if (const auto n = v.whole(0, kMaxLogprobs)) r.logprobs = static_cast<int>(n);
          }),
      add(
          "logprobs", [](V v, R r) { r.logprobs = static_cast<int>(v.whole(0, kMaxLogprobs)); },
          kText),
      add("grammar", read_grammar),
      add("json_schema", [](V v, R r) { read_schema(v, "json_schema", r); }),
      add("response_format", [](V v, R r) { read_response_format(v, true, r); }),
      add("parallel_tool_calls", [](V v, R r) { r.conversation.parallel_tool_calls = v.flag(); }),
      add("reasoning_format", read_reasoning_format),
      add("echo", flag(&CompletionRequest::echo)),
      add("stream", flag(&CompletionRequest::stream)),
      add("stream_options", read_stream_options),
      add("return_progress", flag(&CompletionRequest::return_progress)),
      add("return_tokens", flag(&CompletionRequest::return_tokens)),
      add("cache_prompt", flag(&CompletionRequest::cache_prompt)),
      add("cache_salt", read_salt)};
}

unsigned routes_of(const std::string& name) {
  static const std::map<std::string, unsigned> known = {
      {"all", kOpenAi | kOllama},
      {"OpenAI's and /completion", kOpenAi},
      {"ollama", kOllama},
      {"completions", kText},
      {"chats", kChat},
      {"responses", mask(Route::responses)},
      {"/completion", kLlama},
      {"/api/chat", mask(Route::ollama_chat)},
      {"/api/generate", mask(Route::ollama_generate)},
      {"options", mask(Route::ollama_options)}};
  const auto found = known.find(name);
  return found == known.end() ? 0 : found->second;
}

std::vector<std::string> parts_of(const std::string& text, const std::string& between) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(between, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + between.size();
  }
  return parts;
}

// Rows of fields.md: "| name, name (neutral) | routes | note |". Of several names for the same, the
// last one given applies.
std::vector<Field> make_table() {
  const std::vector<Field> known = readers();
  std::vector<Field> table;
  std::istringstream lines(embedded::serve_fields);
  bool refused = false;
  for (std::string line; std::getline(lines, line);) {
    refused = refused || line.starts_with("| refused");
    const std::vector<std::string> cells = parts_of(line, " | ");
    if (cells.size() != 3) continue;
    unsigned routes = 0;
    for (const std::string& route : parts_of(cells[1], ", ")) routes |= routes_of(route);
    for (std::string name : parts_of(cells[0].substr(2), ", ")) {
      Field field;
      if (const std::size_t open = name.find(" ("); open != std::string::npos) {
        const std::string neutral = name.substr(open + 2, name.size() - open - 3);
        field.neutral = ordered_json::parse(neutral, nullptr, false);
        if (field.neutral.is_discarded()) field.neutral = neutral;
        name.resize(open);
      }
      field.name = name;
      field.routes = routes;
      if (refused) field.refused = cells[2].substr(0, cells[2].size() - 2);
      for (const Field& reader : known) {
        if (!refused && reader.name == name && (reader.routes & routes) != 0) {
          field.read = reader.read;
        }
      }
      if (routes != 0) table.push_back(std::move(field));
    }
  }
  return table;
}

const std::vector<Field>& field_table() {
  static const std::vector<Field> table = make_table();
  return table;
}

// Beside the neutral value, what is empty changes nothing.
void check_refused(const Field& field, const Value& value, const CompletionRequest& request) {
  const ordered_json& json = value.json();
  const ordered_json neutral = field.neutral == "n" ? ordered_json(request.answers) : field.neutral;
  if (json == neutral || json == "" || (json.is_structured() && json.empty())) return;
  if (neutral.is_string() && json == ordered_json::array({neutral})) return;
  value.refuse(cat("is not supported: ", field.refused), "unsupported_parameter");
}

void list_ignored(const Value& object, unsigned route, CompletionRequest& request) {
  constexpr std::size_t kMaxNames = 32;
  constexpr std::size_t kMaxListedName = 64;
  std::vector<std::string> names;
  for (const auto& [name, value] : object.json().items()) {
    if (names.size() == kMaxNames) break;
    const bool known = std::any_of(field_table().begin(), field_table().end(),
                                   [&, &key = name](const Field& field) {
                                     return (field.routes & route) != 0 && key == field.name;
                                   });
    if (known) continue;
    names.push_back(name.size() <= kMaxListedName ? object.at(name.c_str()).path()
                                                  : "(a long name)");
  }
  std::sort(names.begin(), names.end());
  request.ignored.insert(request.ignored.end(), names.begin(), names.end());
}

constexpr std::int64_t kMaxAnswers = 64;  // to a request

Sampling default_sampling(Route route) {
  Sampling s;
  s.temperature = 0.8;
  if (route == Route::llama_completion) return s;
  s.min_p = 0;
  if ((mask(route) & kOllama) != 0) {
    s.top_p = 0.9;
    s.repeat_penalty = 1.1;
  } else {  // OpenAI's: the model's own distribution
    s.temperature = 1;
    s.top_p = 1;
    s.top_k = 0;
  }
  return s;
}

void read_completion(const Value& body, CompletionRequest& request) {
  if (!body.at("prompt")) refuse("prompt", "is missing: give the text to continue");
  if (request.echo && request.logprobs) {
    refuse("echo", "is true and 'logprobs' is given: those of the prompt are not computed");
  }
}

void read_llama_completion(const Value& body, CompletionRequest& request) {
  request.dialect = Dialect::llama_server;
  read_completion(body, request);
  if (!request.length) request.length = kMaxTokens;
  if (request.answers > 1) refuse("n", "is more than 1: use /v1/completions for several answers");
  request.return_tokens = request.return_tokens || request.stream;  // as llama-server does
}

}  // namespace

void read_fields(const Value& object, Route route, CompletionRequest& request) {
  for (const Field& field : field_table()) {
    if ((field.routes & mask(route)) == 0) continue;
    const Value value = object.at(field.name.c_str());
    if (!value) continue;
    if (field.read) field.read(value, request);
    if (!field.refused.empty()) check_refused(field, value, request);
  }
  const Value one = object.at("repeat_penalty"), other = object.at("repetition_penalty");
  if ((mask(route) & kOllama) == 0 && one && other && one.json() != other.json()) {
    other.refuse(cat("is ", shown(other.json()), " and 'repeat_penalty' ", shown(one.json()),
                     ": they are one, give either"));
  }
  list_ignored(object, mask(route), request);
}

CompletionRequest parse_request(std::string_view body, Route route, const BodyLimits& limits,
                                const ServingFacts& model) {
  const ParsedBody parsed(body, limits);
  const Value root = parsed.root();
  CompletionRequest request;
  request.sampling = default_sampling(route);
  const bool ollama = route == Route::ollama_chat || route == Route::ollama_generate;
  request.chat = route == Route::chat || route == Route::responses || route == Route::ollama_chat;
  request.stream = ollama;
  if (ollama) {
    read_ollama(root, route, model, request);
  } else {
    read_fields(root, route, request);
    if (route == Route::completion) read_completion(root, request);
    if (route == Route::llama_completion) read_llama_completion(root, request);
    if (route == Route::chat) read_chat(root, request);
    if (route == Route::responses) read_responses(root, request);
    const auto prompts = static_cast<std::int64_t>(request.prompts.size());
    if (prompts * request.answers > kMaxAnswers) {
      refuse("n", cat("is ", request.answers, " for ", prompts, " prompts: at most ", kMaxAnswers,
                      " answers in all"));
    }
  }
  check_form(request);
  return request;
}

TokenizeRequest parse_tokenize(std::string_view body, const BodyLimits& limits) {
  const ParsedBody parsed(body, limits);
  return {parsed.at("content").text(), parsed.at("add_special").flag_or(false),
          parsed.at("parse_special").flag_or(true), parsed.at("with_pieces").flag_or(false)};
}

std::vector<Token> parse_detokenize(std::string_view body, const BodyLimits& limits) {
  const ParsedBody parsed(body, limits);
  std::vector<Token> list;
  for (const ordered_json& token : parsed.at("tokens").list().json()) {
    list.push_back(token_of(token, "tokens"));
  }
  return list;
}

std::string parse_ollama_show(std::string_view body, const BodyLimits& limits) {
  const ParsedBody parsed(body, limits);
  const Value model = parsed.at("model");
  return model ? model.text() : parsed.at("name").text_or("");
}

}  // namespace mrrope::serve
