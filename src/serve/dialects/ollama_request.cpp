// SPDX-License-Identifier: Apache-2.0
#include "serve/dialects/ollama_request.h"

#include "base/text.h"
#include "serve/api/chat_fields.h"
#include "serve/api/sampling_fields.h"

namespace mrrope::serve {

namespace {

// What ollama uses where a request and a model's file say nothing.
Sampling ollama_sampling() {
  Sampling s;
  s.temperature = 0.8;
  s.top_k = 40;
  s.top_p = 0.9;
  s.min_p = 0;
  s.repeat_penalty = 1.1;
  return s;
}

void read_options(Fields& fields, CompletionRequest& request, std::int64_t context) {
  const ordered_json* given = fields.object("options");
  Fields options(given != nullptr ? *given : ordered_json::object(), "options.");
  read_sampling(options, request, ollama_sampling());
  read_stop(options, request);
  // -1 is without end, -2 up to the end of the context; here both are the latter.
  if (const auto length = options.whole("num_predict", -2, kMostTokens)) {
    if (*length == 0) options.bad("num_predict", "must be -1 or at least 1, not 0");
    request.length = *length < 0 ? kMostTokens : *length;
  }
  if (const auto wanted = options.whole("num_ctx", 1, kMostTokens); wanted && *wanted > context) {
    options.bad("num_ctx", cat("is ", *wanted, ", but the context has ", context,
                               " tokens: start the server with a larger --ctx"));
  }
  options.only("mirostat", 0, "use temperature, top_k, top_p, min_p and typical_p");
  options.only("tfs_z", 1, "use temperature, top_k, top_p, min_p and typical_p");
  options.only("penalize_newline", true, "penalties count every token");
  for (const std::string& name : options.ignored()) request.ignored.push_back(name);
}

// "json", or a JSON schema.
void read_format(Fields& fields, CompletionRequest& request) {
  const ordered_json* format = fields.find("format");
  if (format == nullptr || *format == "") return;
  request.schema_field = "format";
  if (*format == "json") {
    request.schema = schema_text(ordered_json::object(), "format");
  } else if (format->is_object()) {
    request.schema = schema_text(*format, "format");
  } else {
    refuse("format", cat("must be json or a JSON schema, not ", shown(*format)));
  }
  if (!request.sampling.grammar.text.empty()) {
    refuse("format", "is given beside a grammar: give one of them");
  }
  if (request.sampling.ignore_end) {
    refuse("options.ignore_eos", "is true, but an answer with a format ends where that does");
  }
}

// true, false, or how much.
void read_think(Fields& fields, ChatRequest& chat) {
  const ordered_json* think = fields.find("think");
  if (think == nullptr) return;
  if (think->is_boolean()) {
    chat.thinking = think->get<bool>();
    chat.variables = ordered_json{{"enable_thinking", chat.thinking}}.dump();
  } else if (think->is_string()) {
    chat.variables = ordered_json{{"reasoning_effort", *think}}.dump();
  } else {
    refuse("think", cat("must be true, false or an effort, not ", shown(*think)));
  }
}

CompletionRequest read_common(Fields& fields, std::int64_t context) {
  CompletionRequest request;
  request.dialect = Dialect::ollama;
  request.model = fields.text("model").value_or("");
  request.stream = fields.flag("stream", true);
  request.length = kMostTokens;
  read_options(fields, request, context);
  read_format(fields, request);
  fields.only("images", nullptr, "only text is supported");
  fields.only("logprobs", false, "use /v1/chat/completions for log-probabilities");
  fields.only("top_logprobs", 0, "use /v1/chat/completions for log-probabilities");
  return request;
}

void note_ignored(const Fields& fields, CompletionRequest& request) {
  for (const std::string& name : fields.ignored()) request.ignored.push_back(name);
}

}  // namespace

CompletionRequest parse_ollama_chat(std::string_view body, const BodyLimits& limits,
                                    std::int64_t context) {
  Fields fields(body, limits);
  CompletionRequest request = read_common(fields, context);
  request.chat = true;
  const ordered_json* messages = fields.find("messages");
  request.only_loads = messages == nullptr || *messages == ordered_json::array();
  if (request.only_loads) return request;
  read_messages(fields, request.conversation);
  read_tools(fields, request.conversation);
  if (!request.conversation.tools.empty() && !request.schema.empty()) {
    refuse("format", "is given beside tools: give one of them");
  }
  read_think(fields, request.conversation);
  note_ignored(fields, request);
  return request;
}

CompletionRequest parse_ollama_generate(std::string_view body, const BodyLimits& limits,
                                        std::int64_t context, bool has_template) {
  Fields fields(body, limits);
  CompletionRequest request = read_common(fields, context);
  const auto prompt = fields.text("prompt");
  request.only_loads = !prompt || prompt->empty();
  if (request.only_loads) return request;
  const auto system = fields.text("system");
  fields.only("suffix", "", "text can only be continued at its end");
  fields.only("template", "", "chats use the model's template as it is");
  fields.only("context", nullptr, "send the conversation as messages to /api/chat");
  const bool raw = fields.flag("raw");
  if (raw && system && !system->empty()) {
    refuse("system", "is given beside 'raw': write it into the prompt");
  }
  if (raw || (!has_template && (!system || system->empty()))) {
    request.prompts = {{{*prompt, {}}}};
  } else {
    request.chat = request.single_turn = true;
    ordered_json messages = ordered_json::array();
    if (system && !system->empty()) messages.push_back({{"role", "system"}, {"content", *system}});
    messages.push_back({{"role", "user"}, {"content", *prompt}});
    request.conversation.messages = messages.dump();
    read_think(fields, request.conversation);
  }
  note_ignored(fields, request);
  return request;
}

std::string parse_ollama_show(std::string_view body, const BodyLimits& limits) {
  Fields fields(body, limits);
  const auto model = fields.text("model");
  return model ? *model : fields.text("name").value_or("");
}

}  // namespace mrrope::serve
