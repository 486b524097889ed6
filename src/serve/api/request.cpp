// SPDX-License-Identifier: Apache-2.0
#include "serve/api/request.h"

#include "base/text.h"
#include "serve/api/readers.h"

namespace mrrope::serve {

namespace {

constexpr std::int64_t kMaxAnswers = 64;  // to a request

Sampling default_sampling(Route route) {
  Sampling s;
  switch (route) {
    case Route::llama_completion:
      s.temperature = 0.8;
      return s;
    case Route::ollama_chat:
    case Route::ollama_generate:
      s.temperature = 0.8;
      s.top_p = 0.9;
      s.min_p = 0;
      s.repeat_penalty = 1.1;
      return s;
    default:  // OpenAI's: the model's own distribution
      s.temperature = 1;
      s.top_p = 1;
      s.min_p = 0;
      s.top_k = 0;
      return s;
  }
}

void check_answers(const CompletionRequest& request) {
  const auto prompts = static_cast<std::int64_t>(request.prompts.size());
  if (prompts * request.answers > kMaxAnswers) {
    refuse("n", cat("is ", request.answers, " for ", prompts, " prompts: at most ", kMaxAnswers,
                    " answers in all"));
  }
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

void read_chat(const Value& body, CompletionRequest& request) {
  engine::ChatInputs& chat = request.conversation;
  const Value messages = body.at("messages");
  if (!messages) refuse("messages", "is missing: give at least one message");
  read_tools(body, true, chat);
  read_variables(body.at("chat_template_kwargs"), body.at("reasoning_effort"), chat);
  const Value continues = body.at("continue_final_message");
  const Value adds = body.at("add_generation_prompt");
  chat.continue_final = continues && continues.flag();
  chat.add_generation_prompt = adds ? adds.flag() : !chat.continue_final;
  if (chat.continue_final && chat.add_generation_prompt) {
    continues.refuse(
        "and 'add_generation_prompt' are both true: an answer either continues the last message "
        "or starts one");
  }
  const Value last = messages[messages.size() - 1];
  if (chat.continue_final &&
      (last.at("role").json() != "assistant" || !last.at("tool_calls").json().empty())) {
    continues.refuse("is true, but the last message is not a text of the assistant");
  }
  const Value wanted = body.at("logprobs"), top = body.at("top_logprobs");
  if (wanted && wanted.flag()) {
    request.logprobs = top ? static_cast<int>(top.whole(0, kMaxLogprobs)) : 0;
  } else if (top) {
    top.refuse("needs 'logprobs' to be true");
  }
}

}  // namespace

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
    check_answers(request);
  }
  check_form(request);
  return request;
}

TokenizeRequest parse_tokenize(std::string_view body, const BodyLimits& limits) {
  const ParsedBody parsed(body, limits);
  const auto flag = [&](const char* name, bool otherwise) {
    const Value value = parsed.at(name);
    return value ? value.flag() : otherwise;
  };
  return {parsed.at("content").text(), flag("add_special", false), flag("parse_special", true),
          flag("with_pieces", false)};
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
  const Value model = parsed.at("model"), name = parsed.at("name");
  return model ? model.text() : name ? name.text() : "";
}

}  // namespace mrrope::serve
