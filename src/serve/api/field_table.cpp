// SPDX-License-Identifier: Apache-2.0
#include "serve/api/field_table.h"

#include <algorithm>
#include <functional>
#include <sstream>

#include "base/text.h"
#include "serve/api/readers.h"

namespace mrrope::serve {

namespace {

constexpr unsigned mask(Route route) { return static_cast<unsigned>(route); }
constexpr unsigned kText = mask(Route::completion);
constexpr unsigned kChat = mask(Route::chat);
constexpr unsigned kResponses = mask(Route::responses);
constexpr unsigned kLlama = mask(Route::llama_completion);
constexpr unsigned kOllamaChat = mask(Route::ollama_chat);
constexpr unsigned kOllamaText = mask(Route::ollama_generate);
constexpr unsigned kOptions = mask(Route::ollama_options);
constexpr unsigned kTexts = kText | kLlama;
constexpr unsigned kOpenAi = kTexts | kChat;
constexpr unsigned kAll = kOpenAi | kResponses;  // but ollama's
constexpr unsigned kOllama = kOllamaChat | kOllamaText;
constexpr unsigned kSampled = kAll | kOptions;
constexpr unsigned kTools = kChat | kResponses | kOllamaChat;

constexpr int kMaxChoices = 16;  // to a prompt
constexpr double kMaxPenalty = 100;

enum class Use { accepted, refused, ignored };
using Read = std::function<void(const Value&, CompletionRequest&)>;

struct Field {
  std::string name;
  unsigned routes;
  Use use;
  const char* note;      // of a refused one: the reason
  ordered_json neutral;  // of a refused one: passes, as empty strings, lists and objects do
  Read read;             // empty: the route reads it
};

// Adds the fields of a list: their names, each with the JSON of a value that changes nothing.
void add(std::vector<Field>& table, Use use, unsigned routes, const char* note, const char* names,
         const Read& read = {}) {
  std::istringstream words(names);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    table.push_back({word.substr(0, equals), routes, use, note, nullptr, read});
    if (equals == std::string::npos) continue;
    table.back().neutral = ordered_json::parse(word.substr(equals + 1));
  }
}

Read number(double low, double high, double Sampling::*into) {
  return [=](const Value& v, CompletionRequest& r) { r.sampling.*into = v.number(low, high); };
}
Read flag(bool CompletionRequest::*into) {
  return [=](const Value& v, CompletionRequest& r) { r.*into = v.flag(); };
}

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
  const std::string text = format.text();
  if (text != "auto" && text != "none" && text != "deepseek") {
    format.refuse(cat("is ", shown(text), ": choose auto, deepseek or none"));
  }
  request.conversation.split_reasoning = text != "none";
}

void read_salt(const Value& salt, CompletionRequest& request) {
  request.cache_salt = salt.text();
  if (request.cache_salt.empty()) salt.refuse("is empty: give some text, or leave it out");
}

void read_stream_options(const Value& options, CompletionRequest& request) {
  const Value usage = options.object().at("include_usage");
  request.stream_usage = usage && usage.flag();
}

// Of several names for the same, the last one given applies.
void add_accepted(std::vector<Field>& table) {
  using V = const Value&;
  using R = CompletionRequest&;
  const auto accept = [&](unsigned routes, const char* note, const char* names, Read read = {}) {
    add(table, Use::accepted, routes, note, names, read);
  };
  accept(kAll | kOllama, "the name of the model, or nothing", "model",
         [](V v, R r) { r.model = v.text(); });
  accept(kTexts, "a text, tokens, both, or a list of prompts", "prompt", read_prompts);
  accept(kOllamaText, "a text", "prompt");
  accept(kChat, "the conversation", "messages", read_messages);
  accept(kOllamaChat, "the conversation", "messages");
  accept(kResponses, "a text, or messages, calls, their outputs and reasoning", "input");
  accept(kResponses, "the system prompt", "instructions");
  accept(kOllamaText, "the system prompt", "system");
  accept(kOllamaText, "true: the prompt without the template", "raw");
  accept(kOpenAi, "longest answer in tokens; -1: up to the end of the context",
         "n_predict max_tokens max_completion_tokens", [](V v, R r) { r.length = read_length(v); });
  accept(kResponses, "longest answer in tokens", "max_output_tokens",
         [](V v, R r) { r.length = v.whole(1, kMaxTokens); });
  accept(kOptions, "longest answer in tokens; -1, -2: up to the end of the context", "num_predict");
  accept(kOptions, "at most --ctx", "num_ctx");
  accept(kSampled, "up to 16 texts that end the answer", "stop", read_stop);
  accept(kSampled, "true: the model's end of text is never chosen", "ignore_eos",
         [](V v, R r) { r.sampling.ignore_end = v.flag(); });
  const char* const sampling = "sampling";
  accept(kSampled, sampling, "temperature", number(0, 100, &Sampling::temperature));
  accept(kSampled, sampling, "top_k", [](V v, R r) {  // -1 is vLLM's way to say "all"
    r.sampling.top_k = std::max(0, static_cast<int>(v.whole(-1, 1 << 30)));
  });
  accept(kSampled, sampling, "top_p", number(0, 1, &Sampling::top_p));
  accept(kSampled, sampling, "min_p", number(0, 1, &Sampling::min_p));
  accept(kSampled, sampling, "typical_p", number(0, 1, &Sampling::typical_p));
  accept(kSampled, sampling, "seed", read_seed);
  const char* const penalty = "against repetition";
  accept(kSampled, penalty, "frequency_penalty",
         number(-kMaxPenalty, kMaxPenalty, &Sampling::frequency_penalty));
  accept(kSampled, penalty, "presence_penalty",
         number(-kMaxPenalty, kMaxPenalty, &Sampling::presence_penalty));
  accept(kSampled, penalty, "repeat_penalty repetition_penalty",
         number(0.01, kMaxPenalty, &Sampling::repeat_penalty));
  accept(kSampled, "tokens that penalties count (64); -1: all", "repeat_last_n",
         [](V v, R r) { r.sampling.repeat_last_n = static_cast<int>(v.whole(-1, 1 << 30)); });
  accept(
      kSampled,
      "OpenAI's object of tokens, or llama-server's list of pairs; a text stands for each of its "
      "tokens, false means never",
      "logit_bias", read_bias);
  accept(kOpenAi, "answers to each prompt, up to 16; on /completion 1", "n n_cmpl",
         [](V v, R r) { r.answers = static_cast<int>(v.whole(1, kMaxChoices)); });
  const char* const logprobs = "log-probabilities of the answer, and of up to 20 likely tokens";
  accept(kTexts, logprobs, "n_probs", [](V v, R r) {  // 0: none
    if (const auto n = v.whole(0, kMaxLogprobs)) r.logprobs = static_cast<int>(n);
  });
  accept(kText, logprobs, "logprobs",
         [](V v, R r) { r.logprobs = static_cast<int>(v.whole(0, kMaxLogprobs)); });
  accept(kChat, logprobs, "logprobs top_logprobs");
  const char* const form = "form of the answer: a JSON schema, or a grammar in GBNF";
  accept(kSampled, form, "grammar", read_grammar);
  accept(kOpenAi, form, "json_schema", [](V v, R r) { read_schema(v, "json_schema", r); });
  accept(kOpenAi, form, "response_format", [](V v, R r) { read_response_format(v, true, r); });
  accept(kResponses, "format: the form of the answer", "text");
  accept(kOllama, "json, or a JSON schema", "format");
  const char* const tools = "functions; auto, none, required, or one by name";
  accept(kTools, tools, "tools tool_choice");
  accept(kTools, tools, "parallel_tool_calls",
         [](V v, R r) { r.conversation.parallel_tool_calls = v.flag(); });
  accept(kChat, "for the template", "chat_template_kwargs reasoning_effort");
  accept(kResponses, "effort: for the template", "reasoning");
  accept(kOllama, "true, false or an effort: for the template", "think");
  accept(kChat, "auto, deepseek, or none: reasoning stays in the content", "reasoning_format",
         read_reasoning_format);
  accept(kChat, "where the answer begins", "add_generation_prompt continue_final_message");
  accept(kText, "true: the prompt before the answer", "echo", flag(&CompletionRequest::echo));
  accept(kAll | kOllama, "the answer as it is written", "stream", flag(&CompletionRequest::stream));
  accept(kOpenAi, "include_usage", "stream_options", read_stream_options);
  accept(kAll, "chunks while the prompt is read", "return_progress",
         flag(&CompletionRequest::return_progress));
  accept(kLlama, "the tokens of the answer", "return_tokens",
         flag(&CompletionRequest::return_tokens));
  accept(kAll, "false: the whole prompt is computed", "cache_prompt",
         flag(&CompletionRequest::cache_prompt));
  accept(kAll, "a cached prefix is shared with the same salt only", "cache_salt", read_salt);
  accept(kOllama, "an object of the fields marked options", "options");
}

// Beside the neutral value, what is empty changes nothing.
void refuse_unless(const ordered_json& neutral, const Value& value, const std::string& why) {
  const ordered_json& json = value.json();
  if (json == neutral || json == "" || (json.is_structured() && json.empty())) return;
  value.refuse(cat("is not supported: ", why), "unsupported_parameter");
}

// Fields that would change the answer. Companions that mean nothing without them (mirostat_tau,
// dry_base, ...) are ignored.
void add_refused(std::vector<Field>& table) {
  const auto refuse = [&](unsigned routes, const char* why, const char* names) {
    add(table, Use::refused, routes, why, names);
  };
  refuse(kOpenAi, "every answer is returned: use n", R"(best_of="n")");
  table.back().read = [](const Value& v, CompletionRequest& r) {
    refuse_unless(r.answers, v, "every answer is returned: use n");
  };
  refuse(kAll, "use frequency_penalty, presence_penalty or repeat_penalty against repetition",
         "dry_multiplier=0 no_repeat_ngram_size=0 repetition_detection");
  refuse(kOptions, "penalties count every token", "penalize_newline=true");
  const char* const samplers = "use temperature, top_k, top_p, min_p and typical_p";
  refuse(kSampled, samplers, "mirostat=0 tfs_z=1");
  refuse(kAll, samplers,
         "top_a=0 top_n_sigma=-1 xtc_probability=0 dynatemp_range=0 adaptive_target=-1 min_keep=0 "
         "samplers use_beam_search=false length_penalty=1");
  refuse(kAll, "use logit_bias to change logits",
         "allowed_token_ids bad_words logits_processors vllm_xargs");
  refuse(kAll, "use response_format, json_schema or grammar",
         "guided_json guided_regex guided_choice guided_grammar structured_outputs structural_tag");
  refuse(kAll, "it is for llama-server's own use; send tools instead",
         "grammar_lazy=false grammar_triggers preserved_tokens generation_prompt chat_parser "
         "parse_tool_calls=true");
  refuse(kAll, "an answer ends at the model's end of text, 'stop' or max_tokens",
         "min_tokens=0 stop_token_ids t_max_predict_ms=-1 t_max_prompt_ms=-1 n_indent=0");
  refuse(kAll, "an answer ends before the stop string", "include_stop_str_in_output=false");
  refuse(kAll, "control tokens have no text",
         "skip_special_tokens=true spaces_between_special_tokens=true");
  refuse(kAll, "log-probabilities name tokens by their text", "return_tokens_as_token_ids=false");
  refuse(kAll, "use /tokenize, or return_tokens of /completion", "return_token_ids=false");
  refuse(kAll, "log-probabilities are those of the model", "post_sampling_probs=false");
  refuse(kAll, "log-probabilities are those of the answer", "prompt_logprobs");
  const char* const logprobs = "use /v1/chat/completions for log-probabilities";
  refuse(kOllama, logprobs, "logprobs=false");
  refuse(kOllama | kResponses, logprobs, "top_logprobs=0");
  refuse(kChat, "use logprobs and top_logprobs", "n_probs=0");
  refuse(kChat, "a chat's answer does not repeat its messages", "echo=false");
  refuse(kLlama, "the answer has all its fields", "response_fields");
  const char* const truncated = "prompts are not truncated";
  refuse(kAll, truncated, "truncate_prompt_tokens");
  refuse(kResponses, truncated, R"(truncation="disabled" context_management)");
  refuse(kAll, "only a common prefix is reused", "n_cache_reuse=0");
  refuse(kAll, "the cache stays here", "kv_transfer_params");
  refuse(kAll, "the model is served as it is", "lora lora_adapters");
  const char* const text = "only text is supported";
  refuse(
      kAll, text,
      R"(prompt_embeds image_data multimodal_data mm_processor_kwargs audio modalities=["text"])");
  refuse(kOllama, text, "images");
  const char* const templates = "chats use the model's template as it is";
  refuse(kAll, templates, "chat_template documents add_special_tokens");
  refuse(kOllamaText, templates, "template");
  refuse(kTexts, "a completion has no template; use /v1/chat/completions",
         "messages tools chat_template_kwargs continue_final_message=false "
         "add_generation_prompt=true");
  refuse(kAll, "use reasoning_format none to have it in the content", "include_reasoning=true");
  refuse(kAll, "reasoning is as long as the model makes it",
         "reasoning_budget_tokens=-1 thinking_budget_tokens=-1 thinking_token_budget "
         R"(reasoning_control=false verbosity="medium")");
  refuse(kAll, "use tools and tool_choice", R"(functions function_call="auto")");
  refuse(kResponses, "use parallel_tool_calls", "max_tool_calls");
  refuse(kAll, "nothing is searched", "web_search_options");
  refuse(kAll | kOllamaText, "text can only be continued at its end", "suffix");
  refuse(kResponses, "nothing is kept here: send the whole conversation as input",
         "previous_response_id conversation prompt background=false");
  refuse(kOllamaText, "send the conversation as messages to /api/chat", "context");
}

// Known to change nothing. Unknown fields are ignored as well.
void add_ignored(std::vector<Field>& table) {
  const auto ignore = [&](unsigned routes, const char* note, const char* names) {
    add(table, Use::ignored, routes, note, names);
  };
  ignore(kAll, "for the client's own records",
         "user metadata store service_tier safety_identifier priority request_id");
  ignore(kAll, "slots are chosen by the prompt, and all of it is kept",
         "prompt_cache_key prompt_cache_retention prediction id_slot n_keep n_discard");
  ignore(kAll, "the answer has its own form",
         "timings_per_token verbose sse_ping_interval backend_sampling");
  ignore(kAll, "companions of refused fields",
         "mirostat_tau mirostat_eta dry_base dry_allowed_length dry_penalty_last_n "
         "dry_sequence_breakers xtc_threshold dynatemp_exponent");
  ignore(kOllama, "the model stays loaded", "keep_alive");
  ignore(kOptions, "memory and threads are the server's",
         "num_batch num_gpu main_gpu num_thread num_keep use_mmap numa");
}

const std::vector<Field>& field_table() {
  static const std::vector<Field> table = [] {
    std::vector<Field> all;
    add_accepted(all);
    add_refused(all);
    add_ignored(all);
    return all;
  }();
  return table;
}

void list_ignored(const Value& object, unsigned route, CompletionRequest& request) {
  constexpr std::size_t kMaxNames = 32;
  constexpr std::size_t kMaxListedName = 64;
  std::vector<std::string> names;
  for (const auto& [name, value] : object.json().items()) {
    if (names.size() == kMaxNames) break;
    const bool known = std::any_of(
        field_table().begin(), field_table().end(), [&, &key = name](const Field& field) {
          return (field.routes & route) != 0 && field.use != Use::ignored && key == field.name;
        });
    if (known) continue;
    names.push_back(name.size() <= kMaxListedName ? object.at(name.c_str()).path()
                                                  : "(a long name)");
  }
  std::sort(names.begin(), names.end());
  request.ignored.insert(request.ignored.end(), names.begin(), names.end());
}

std::string routes_text(unsigned routes) {
  static const std::pair<unsigned, const char*> kNames[] = {
      {kAll | kOllama, "all"},
      {kAll, "OpenAI's and /completion"},
      {kOpenAi, "completions, chats, /completion"},
      {kOllama, "ollama"},
      {kText, "completions"},
      {kChat, "chats"},
      {kResponses, "responses"},
      {kLlama, "/completion"},
      {kOllamaChat, "/api/chat"},
      {kOllamaText, "/api/generate"},
      {kOptions, "options"}};
  std::string text;
  for (const auto& [bits, name] : kNames) {
    if ((routes & bits) != bits) continue;
    text += cat(text.empty() ? "" : ", ", name);
    routes &= ~bits;
  }
  return text;
}

}  // namespace

void read_fields(const Value& object, Route route, CompletionRequest& request) {
  for (const Field& field : field_table()) {
    if ((field.routes & mask(route)) == 0) continue;
    const Value value = object.at(field.name.c_str());
    if (!value) continue;
    if (field.read) {
      field.read(value, request);
    } else if (field.use == Use::refused) {
      refuse_unless(field.neutral, value, field.note);
    }
  }
  const Value one = object.at("repeat_penalty"), other = object.at("repetition_penalty");
  if ((mask(route) & kSampled) != 0 && one && other && one.json() != other.json()) {
    other.refuse(cat("is ", shown(other.json()), " and 'repeat_penalty' ", shown(one.json()),
                     ": they are one, give either"));
  }
  list_ignored(object, mask(route), request);
}

// Neighbours with the same routes and note share a row.
std::string fields_markdown() {
  static const std::pair<Use, const char*> kTables[] = {
      {Use::accepted, "| accepted | routes | |"},
      {Use::refused, "| refused unless null, empty or as in parentheses | routes | |"},
      {Use::ignored, "| ignored, as every unknown field | routes | |"}};
  std::string out;
  for (const auto& [use, head] : kTables) {
    out += cat(out.empty() ? "" : "\n", head, "\n|---|---|---|\n");
    std::string names;
    const std::vector<Field>& table = field_table();
    for (std::size_t i = 0; i < table.size(); ++i) {
      const Field& field = table[i];
      if (field.use != use) continue;
      const std::string neutral = field.neutral.is_string()  ? field.neutral.get<std::string>()
                                  : field.neutral.is_array() ? "text"
                                                             : field.neutral.dump();
      names += cat(names.empty() ? "" : ", ", field.name);
      if (!field.neutral.is_null()) names += cat(" (", neutral, ")");
      const Field* next = i + 1 < table.size() ? &table[i + 1] : nullptr;
      if (next != nullptr && next->routes == field.routes && next->use == use &&
          std::string_view(next->note) == field.note) {
        continue;
      }
      out += cat("| ", names, " | ", routes_text(field.routes), " | ", field.note, " |\n");
      names.clear();
    }
  }
  return out;
}

}  // namespace mrrope::serve
