// SPDX-License-Identifier: Apache-2.0
// Requests are read by a table of every known field: of OpenAI's completions, chats and responses,
// of Anthropic's messages, llama-server, vLLM and ollama. fields.md is that table, and
// docs/reference/server.md shows it.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include "base/text.h"
#include "serve/api/fields.h"
#include "serve/serve_files.h"

namespace mrrope::serve {

namespace {

constexpr unsigned mask(Route route) { return unsigned(route); }
constexpr unsigned kText = mask(Route::completion);
constexpr unsigned kChat = mask(Route::chat);
constexpr unsigned kLlama = mask(Route::llama_completion);
constexpr unsigned kOpenAi = kText | kChat | mask(Route::responses) | kLlama;
constexpr unsigned kOllama = mask(Route::ollama_chat) | mask(Route::ollama_generate);
constexpr unsigned kMessages = mask(Route::messages) | mask(Route::count_tokens);
constexpr unsigned kAnywhere = ~0U;

constexpr int kMaxChoices = 16;  // to a prompt
constexpr double kMaxPenalty = 100;
constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopBytes = 1024;
constexpr std::size_t kMaxBiases = 4096;
constexpr std::size_t kMaxBiasBytes = 1024;
constexpr std::size_t kMaxGrammarBytes = std::size_t{256} << 10;
constexpr double kMaxBias = 1e6;

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
    refuse_if(
        prompt.size() != 1 || !prompt.contains("prompt_string") ||
            !prompt["prompt_string"].is_string(),
        "prompt",
        cat("must be {\"prompt_string\": TEXT}, not ", shown(prompt), ": only text is supported"));
    return {{prompt["prompt_string"].get<std::string>(), {}}};
  }
  refuse_if(!prompt.is_array() || prompt.empty(), "prompt",
            cat("must be a string or a list of tokens, not ", shown(prompt)));
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
  prompt.refuse_if(json.size() > kMaxPrompts,
                   cat("lists ", json.size(), " prompts: at most ", kMaxPrompts));
  for (const ordered_json& one : json) request.prompts.push_back(one_prompt(one));
}

// A number, or false: never.
float bias_value(const ordered_json& value, const Value& field) {
  if (value.is_boolean() && !value.get<bool>()) return -std::numeric_limits<float>::infinity();
  field.refuse_if(
      !value.is_number() || !(std::fabs(value.get<double>()) <= kMaxBias),
      cat("must give each token a number up to ", kMaxBias, " or false, not ", shown(value)));
  return value.get<float>();
}

Bias bias_of(const std::string& name, const ordered_json& value, const Value& field) {
  Bias bias{std::nullopt, name, bias_value(value, field)};
  Token token = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, token);
  if (rest == end && error == std::errc() && token >= 0) {
    bias.token = token;
  } else if (rest == end || name.empty() || name.size() > kMaxBiasBytes) {
    field.refuse(cat("names ", shown(name),
                     ": give the number of a token, from 0, or a text of up to ", kMaxBiasBytes,
                     " bytes"));
  }
  return bias;
}

void read_stop(const Value& stop, CompletionRequest& request) {
  const bool list = stop.json().is_array();
  for (const Value& entry : list ? stop.entries(kMaxStops, "strings") : std::vector{stop}) {
    if (!entry.json().is_string()) stop.refuse(cat("must hold strings, not ", shown(entry.json())));
    request.stop.push_back(entry.text());
    const std::size_t size = request.stop.back().size();
    stop.refuse_if(size == 0 || size > kMaxStopBytes,
                   cat("holds a string of ", size, " bytes: 1 to ", kMaxStopBytes));
  }
}

void read_seed(const Value& seed, CompletionRequest& request) {
  const std::int64_t number = seed.whole(std::numeric_limits<std::int32_t>::min(),
                                         std::numeric_limits<std::uint32_t>::max());
  request.has_seed = number != -1;  // llama-server's way to ask for any
  if (request.has_seed) request.sampling.seed = std::uint32_t(number);
}

// OpenAI's object of tokens, or llama-server's list of pairs; in both a text stands for its tokens.
void read_bias(const Value& bias, CompletionRequest& request) {
  const ordered_json& list = bias.json();
  if (!list.is_object() && !list.is_array()) bias.refuse_type("an object of tokens and numbers");
  bias.refuse_if(list.size() > kMaxBiases,
                 cat("has ", list.size(), " entries: at most ", kMaxBiases));
  if (list.is_object()) {
    for (const auto& [name, value] : list.items()) {
      request.bias.push_back(bias_of(name, value, bias));
    }
    return;
  }
  for (const ordered_json& pair : list) {
    bias.refuse_if(!pair.is_array() || pair.size() != 2,
                   cat("must list pairs of a token and a number, not ", shown(pair)));
    bias.refuse_if(!pair[0].is_string() && !pair[0].is_number_integer(),
                   cat("names a token by its number or its text, not by ", shown(pair[0])));
    const std::string name = pair[0].is_string() ? pair[0].get<std::string>() : pair[0].dump();
    request.bias.push_back(bias_of(name, pair[1], bias));
  }
}

void read_grammar(const Value& grammar, CompletionRequest& request) {
  std::string& text = request.sampling.grammar.text;
  text = grammar.text();
  grammar.refuse_if(text.size() > kMaxGrammarBytes,
                    cat("has ", text.size(), " bytes: at most ", kMaxGrammarBytes, " are read"));
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

Read number_field(double low, double high, double Sampling::*into) {
  return [=](const Value& v, CompletionRequest& r) { r.sampling.*into = v.number(low, high); };
}
Read flag_field(bool CompletionRequest::*into) {
  return [=](const Value& v, CompletionRequest& r) { r.*into = v.flag(); };
}

// How accepted fields are read. Those that are not here are read by their route.
struct FieldReader {
  std::vector<std::string> names;
  Read read;
  unsigned routes = kAnywhere;
};

std::vector<FieldReader> field_readers() {
  using V = const Value&;
  using R = CompletionRequest&;
  const Read length = [](V v, R r) { r.length = read_length(v); };
  const Read answers = [](V v, R r) { r.answers = int(v.whole(1, kMaxChoices)); };
  const Read logprobs = [](V v, R r) { r.logprobs = int(v.whole(0, kMaxLogprobs)); };
  const Read n_probs = [logprobs](V v, R r) {
    if (v.json() != 0) logprobs(v, r);
  };
  const Read penalty = number_field(0.01, kMaxPenalty, &Sampling::repeat_penalty);
  const auto any_penalty = [](double Sampling::*into) {
    return number_field(-kMaxPenalty, kMaxPenalty, into);
  };
  // -1 is vLLM's way to say "all".
  const Read top_k = [](V v, R r) { r.sampling.top_k = std::max(0, int(v.whole(-1, 1 << 30))); };
  const Read last_n = [](V v, R r) { r.sampling.repeat_last_n = int(v.whole(-1, 1 << 30)); };
  return {
      {{"model"}, [](V v, R r) { r.model = v.text(); }},
      {{"prompt"}, read_prompts, kText | kLlama},
      {{"messages"}, read_messages, kChat},
      {{"n_predict", "max_tokens", "max_completion_tokens"}, length},
      {{"max_output_tokens"}, [](V v, R r) { r.length = v.whole(1, kMaxTokens); }},
      {{"max_tokens"}, [](V v, R r) { r.length = v.whole(1, kMaxTokens); }, kMessages},
      {{"stop", "stop_sequences"}, read_stop},
      {{"ignore_eos"}, [](V v, R r) { r.sampling.ignore_end = v.flag(); }},
      {{"temperature"}, number_field(0, 100, &Sampling::temperature)},
      {{"top_k"}, top_k},
      {{"top_p"}, number_field(0, 1, &Sampling::top_p)},
      {{"min_p"}, number_field(0, 1, &Sampling::min_p)},
      {{"typical_p"}, number_field(0, 1, &Sampling::typical_p)},
      {{"seed"}, read_seed},
      {{"frequency_penalty"}, any_penalty(&Sampling::frequency_penalty)},
      {{"presence_penalty"}, any_penalty(&Sampling::presence_penalty)},
      {{"repeat_penalty", "repetition_penalty"}, penalty},
      {{"repeat_last_n"}, last_n},
      {{"logit_bias"}, read_bias},
      {{"n", "n_cmpl"}, answers},
      {{"n_probs"}, n_probs},
      {{"logprobs"}, logprobs, kText},
      {{"grammar"}, read_grammar},
      {{"json_schema"}, [](V v, R r) { read_schema(v, "json_schema", r); }},
      {{"response_format"}, [](V v, R r) { read_response_format(v, true, r); }},
      {{"parallel_tool_calls"}, [](V v, R r) { r.conversation.parallel_tool_calls = v.flag(); }},
      {{"reasoning_format"}, read_reasoning_format},
      {{"echo"}, flag_field(&CompletionRequest::echo)},
      {{"stream"}, flag_field(&CompletionRequest::stream)},
      {{"stream_options"}, read_stream_options},
      {{"return_progress"}, flag_field(&CompletionRequest::return_progress)},
      {{"return_tokens"}, flag_field(&CompletionRequest::return_tokens)},
      {{"cache_prompt"}, flag_field(&CompletionRequest::cache_prompt)},
      {{"cache_salt"}, read_salt}};
}

void read_completion(const Value& body, const BodyLimits&, CompletionRequest& request) {
  if (!body.at("prompt")) refuse("prompt", "is missing: give the text to continue");
  refuse_if(request.echo && request.logprobs, "echo",
            "is true and 'logprobs' is given: those of the prompt are not computed");
}

void read_llama_completion(const Value& body, const BodyLimits& limits,
                           CompletionRequest& request) {
  read_completion(body, limits, request);
  if (!request.length) request.length = kMaxTokens;
  if (request.answers > 1) refuse("n", "is more than 1: use /v1/completions for several answers");
  request.return_tokens = request.return_tokens || request.stream;  // as llama-server does
}

// What each route has beside the fields of the table, and its name there.
struct RouteRow {
  Route route;
  const char* name;
  bool chat;
  ReadBody* read;
};
constexpr RouteRow kRoutes[] = {
    {Route::completion, "completions", false, read_completion},
    {Route::chat, "chats", true, read_chat},
    {Route::responses, "responses", true, read_responses},
    {Route::llama_completion, "/completion", false, read_llama_completion},
    {Route::ollama_chat, "/api/chat", true, read_ollama},
    {Route::ollama_generate, "/api/generate", false, read_ollama},
    {Route::ollama_options, "options", false, nullptr},
    {Route::messages, "/v1/messages", true, read_anthropic},
    {Route::count_tokens, "/v1/messages", true, read_anthropic},
    // Read by embeddings_reply():
    {Route::embeddings, "/v1/embeddings", false, nullptr},
    {Route::ollama_embed, "/api/embed", false, nullptr},
    {Route::ollama_embeddings, "/api/embeddings", false, nullptr}};

unsigned routes_of(const std::string& name) {
  if (name == "all") return kOpenAi | kOllama | kMessages;
  if (name == "OpenAI's and /completion") return kOpenAi;
  if (name == "ollama") return kOllama;
  unsigned routes = 0;
  for (const RouteRow& row : kRoutes) {
    if (name == row.name) routes |= mask(row.route);
  }
  return routes;
}

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

// Rows of fields.md: "| name, name (neutral) | routes | note |". Of several names for the same, the
// last one given applies.
std::vector<Field> make_table() {
  const std::vector<FieldReader> known = field_readers();
  std::vector<Field> table;
  std::istringstream lines(embedded::serve_fields);
  bool refused = false;
  const std::regex row(R"(\| (.+) \| (.+) \| (.*)\|)");
  for (std::string line; std::getline(lines, line);) {
    refused = refused || line.starts_with("| refused");
    std::smatch cells;
    if (!std::regex_match(line, cells, row)) continue;
    unsigned routes = 0;
    for (const std::string& route : split_list(cells.str(2))) routes |= routes_of(route);
    for (std::string name : split_list(cells.str(1))) {
      Field field;
      if (const std::size_t open = name.find(" ("); open != std::string::npos) {
        const std::string neutral = name.substr(open + 2, name.size() - open - 3);
        field.neutral = ordered_json::parse(neutral, nullptr, false);
        if (field.neutral.is_discarded()) field.neutral = neutral;
        name.resize(open);
      }
      field.name = name;
      field.routes = routes;
      if (refused) field.refused = trimmed(cells.str(3));
      for (const FieldReader& reader : known) {
        const bool named = has(reader.names, name);
        if (!refused && named && (reader.routes & routes) != 0) field.read = reader.read;
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

// What excludes each other.
void check_form(const CompletionRequest& request) {
  const std::string options = (mask(request.route) & kOllama) != 0 ? "options." : "";
  const bool grammar = !request.sampling.grammar.text.empty();
  const bool schema = !request.schema.empty();
  const bool calls = !request.callable.empty();
  refuse_if(schema && grammar, options + "grammar",
            "is given beside a JSON schema: give one of them");
  refuse_if(request.sampling.ignore_end && (grammar || schema || calls), options + "ignore_eos",
            "is true, but an answer with a grammar, a schema or tool calls ends where that does");
  refuse_if(calls && (grammar || schema), schema ? request.schema_field : options + "grammar",
            "is given beside tools: give one of them, or tool_choice none");
}

}  // namespace

void read_fields(const Value& object, Route route, CompletionRequest& request) {
  constexpr std::size_t kMaxNames = 32;
  constexpr std::size_t kMaxListedName = 64;
  std::set<std::string> known;
  for (const Field& field : field_table()) {
    if ((field.routes & mask(route)) == 0) continue;
    known.insert(field.name);
    const Value value = object.at(field.name.c_str());
    if (!value) continue;
    if (field.read) field.read(value, request);
    if (!field.refused.empty()) check_refused(field, value, request);
  }
  const Value one = object.at("repeat_penalty"), other = object.at("repetition_penalty");
  other.refuse_if((mask(route) & kOllama) == 0 && one && other && one.json() != other.json(),
                  cat("is ", shown(other.json()), " and 'repeat_penalty' ", shown(one.json()),
                      ": they are one, give either"));
  std::vector<std::string> ignored;
  for (const auto& [name, value] : object.json().items()) {
    if (known.count(name) != 0 || ignored.size() == kMaxNames) continue;
    ignored.push_back(name.size() <= kMaxListedName ? object.at(name.c_str()).path()
                                                    : "(a long name)");
  }
  std::ranges::sort(ignored);
  request.ignored.insert(request.ignored.end(), ignored.begin(), ignored.end());
}

CompletionRequest parse_request(std::string_view body, Route route, const BodyLimits& limits) {
  constexpr std::int64_t kMaxAnswers = 64;  // to a request
  const ParsedBody parsed(body, limits);
  const RouteRow& row = *find_by(kRoutes, &RouteRow::route, route);
  CompletionRequest request;
  request.route = route;
  request.chat = row.chat;
  request.sampling = default_sampling(route);
  request.stream = (mask(route) & kOllama) != 0;
  read_fields(parsed.root(), route, request);
  row.read(parsed.root(), limits, request);
  const auto prompts = std::int64_t(request.prompts.size());
  refuse_if(prompts * request.answers > kMaxAnswers, "n",
            cat("is ", request.answers, " for ", prompts, " prompts: at most ", kMaxAnswers,
                " answers in all"));
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

}  // namespace mrrope::serve
