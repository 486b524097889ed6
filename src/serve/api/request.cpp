// SPDX-License-Identifier: Apache-2.0
#include "serve/api/request.h"

#include <algorithm>

#include "base/text.h"
#include "serve/api/chat_fields.h"
#include "serve/api/sampling_fields.h"

namespace mrrope::serve {

namespace {

constexpr std::int64_t kMostAnswers = 64;  // to a request
constexpr std::int64_t kMostChoices = 16;  // to a prompt
constexpr int kMostLogprobs = 20;

// A text, llama-server's object with one, or a list of tokens and texts in turn.
std::vector<PromptPart> one_prompt(const ordered_json& prompt) {
  if (prompt.is_string()) return {{prompt.get<std::string>(), {}}};
  if (prompt.is_object()) {
    const ordered_json text = prompt.value("prompt_string", ordered_json());
    if (prompt.size() != 1 || !text.is_string()) {
      refuse("prompt", cat("must be {\"prompt_string\": TEXT}, not ", shown(prompt),
                           ": only text is supported"));
    }
    return {{text.get<std::string>(), {}}};
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
void read_prompts(Fields& fields, CompletionRequest& request) {
  const ordered_json* prompt = fields.find("prompt");
  if (prompt == nullptr) refuse("prompt", "is missing: give the text to continue");
  const bool list = prompt->is_array() && !prompt->empty() &&
                    std::none_of(prompt->begin(), prompt->end(),
                                 [](const ordered_json& part) { return part.is_number(); });
  if (!list) {
    request.prompts.push_back(one_prompt(*prompt));
    return;
  }
  if (prompt->size() > kMostAnswers) {
    refuse("prompt", cat("lists ", prompt->size(), " prompts: at most ", kMostAnswers));
  }
  for (const ordered_json& one : *prompt) request.prompts.push_back(one_prompt(one));
}

// -1 is up to the end of the context.
std::optional<std::int64_t> read_length(Fields& fields, const char* name) {
  const auto length = fields.whole(name, -1, kMostTokens);
  if (length && *length == 0) refuse(name, "must be -1 or at least 1, not 0");
  return length && *length < 0 ? kMostTokens : length;
}

// OpenAI's defaults: the model's own distribution.
Sampling openai_sampling() {
  Sampling s;
  s.temperature = 1;
  s.top_p = 1;
  s.min_p = 0;
  s.top_k = 0;
  return s;
}

// llama-server's, for its own route.
Sampling llama_sampling() {
  Sampling s;
  s.temperature = 0.8;
  return s;
}

void read_answers(Fields& fields, CompletionRequest& request) {
  for (const char* name : {"n", "n_cmpl"}) {
    const auto n = fields.whole(name, 1, kMostChoices);
    if (n) request.answers = static_cast<int>(*n);
  }
  const auto all = static_cast<std::int64_t>(request.prompts.size()) * request.answers;
  if (all > kMostAnswers) {
    refuse("n", cat("is ", request.answers, " for ", request.prompts.size(), " prompts: at most ",
                    kMostAnswers, " answers in all"));
  }
  fields.only("best_of", request.answers, "every answer is returned: use n");
}

void read_common(Fields& fields, CompletionRequest& request, const Sampling& usual) {
  request.model = fields.text("model").value_or("");
  read_sampling(fields, request, usual);
  read_schema(fields, request);
  request.length = read_length(fields, "max_tokens");
  // llama-server's name for it.
  if (const auto length = read_length(fields, "max_completion_tokens")) request.length = length;
  if (const auto length = read_length(fields, "n_predict")) {
    if (!request.length) request.length = length;
  }
  read_cache(fields, request);
  read_stop(fields, request);
  request.stream = fields.flag("stream");
  request.return_progress = fields.flag("return_progress");
  if (const ordered_json* options = fields.object("stream_options")) {
    const ordered_json usage = options->value("include_usage", ordered_json(nullptr));
    if (!usage.is_null() && !usage.is_boolean()) {
      refuse("stream_options.include_usage", "must be true or false");
    }
    request.stream_usage = usage == true;
  }
  read_answers(fields, request);
  check_known_fields(fields);
}

// A completion has no template.
void refuse_chat_fields(Fields& fields) {
  constexpr const char* kChats = "a completion has no template; use /v1/chat/completions";
  for (const char* name : {"messages", "tools", "chat_template_kwargs"}) {
    fields.only(name, nullptr, kChats);
  }
  fields.only("continue_final_message", false, kChats);
  fields.only("add_generation_prompt", true, kChats);
}

}  // namespace

CompletionRequest parse_completion(std::string_view body, const BodyLimits& limits) {
  Fields fields(body, limits);
  CompletionRequest request;
  read_prompts(fields, request);
  read_common(fields, request, openai_sampling());
  if (const auto top = fields.whole("logprobs", 0, kMostLogprobs)) {
    request.logprobs = static_cast<int>(*top);
  }
  // llama-server's name, where 0 is none.
  const auto top = fields.whole("n_probs", 0, kMostLogprobs);
  if (top && *top > 0 && !request.logprobs) request.logprobs = static_cast<int>(*top);
  request.echo = fields.flag("echo");
  if (request.echo && request.logprobs) {
    refuse("echo", "is true and 'logprobs' is given: those of the prompt are not computed");
  }
  refuse_chat_fields(fields);
  request.ignored = fields.ignored();
  return request;
}

CompletionRequest parse_llama_completion(std::string_view body, const BodyLimits& limits) {
  Fields fields(body, limits);
  CompletionRequest request;
  request.dialect = Dialect::llama_server;
  read_prompts(fields, request);
  read_common(fields, request, llama_sampling());
  if (!request.length) request.length = kMostTokens;
  if (request.answers > 1) refuse("n", "is more than 1: use /v1/completions for several answers");
  const auto top = fields.whole("n_probs", 0, kMostLogprobs);
  if (top && *top > 0) request.logprobs = static_cast<int>(*top);
  request.return_tokens = fields.flag("return_tokens") || request.stream;  // as llama-server does
  fields.only("response_fields", nullptr, "the answer has all its fields");
  refuse_chat_fields(fields);
  request.ignored = fields.ignored();
  return request;
}

CompletionRequest parse_chat(std::string_view body, const BodyLimits& limits) {
  Fields fields(body, limits);
  CompletionRequest request;
  request.chat = true;
  read_messages(fields, request.conversation);
  read_common(fields, request, openai_sampling());
  read_chat_options(fields, request);
  const auto top = fields.whole("top_logprobs", 0, kMostLogprobs);
  if (fields.flag("logprobs")) {
    request.logprobs = static_cast<int>(top.value_or(0));
  } else if (top) {
    refuse("top_logprobs", "needs 'logprobs' to be true");
  }
  fields.only("n_probs", 0, "use logprobs and top_logprobs");
  fields.only("echo", false, "a chat's answer does not repeat its messages");
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
  request.with_pieces = fields.flag("with_pieces");
  return request;
}

std::vector<Token> parse_detokenize(std::string_view body, const BodyLimits& limits) {
  Fields fields(body, limits);
  const ordered_json* tokens = fields.find("tokens");
  if (tokens == nullptr) refuse("tokens", "is missing: give a list of tokens");
  if (!tokens->is_array()) refuse("tokens", cat("must be a list, not ", shown(*tokens)));
  std::vector<Token> list;
  for (const ordered_json& token : *tokens) list.push_back(token_of(token, "tokens"));
  return list;
}

}  // namespace mrrope::serve
