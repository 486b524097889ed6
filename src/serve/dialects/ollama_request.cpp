// SPDX-License-Identifier: Apache-2.0
// ollama's bodies, read as strictly as OpenAI's.
#include "base/text.h"
#include "serve/api/readers.h"

namespace mrrope::serve {

namespace {

void read_options(const Value& given, std::int64_t context, CompletionRequest& request) {
  request.length = kMaxTokens;
  if (!given) return;
  read_fields(given.object(), Route::ollama_options, request);
  // -1 is without end, -2 up to the end of the context; here both are the latter.
  if (const Value length = given.at("num_predict"); length && length.json() != -2) {
    request.length = read_length(length);
  }
  const Value wanted = given.at("num_ctx");
  if (wanted && wanted.whole(1, kMaxTokens) > context) {
    wanted.refuse(cat("is ", shown(wanted.json()), ", but the context has ", context,
                      " tokens: start the server with a larger --ctx"));
  }
}

// "json", or a JSON schema.
void read_format(const Value& format, CompletionRequest& request) {
  if (!format || format.json() == "") return;
  const bool any = format.json() == "json";
  if (!any && !format.json().is_object()) format.refuse_type("json or a JSON schema");
  read_schema(any ? format.at("schema") : format, "format", request);
}

// true, false, or how much.
void read_think(const Value& think, engine::ChatInputs& chat) {
  if (!think) return;
  if (!think.json().is_boolean() && !think.json().is_string()) {
    think.refuse_type("true, false or an effort");
  }
  const bool flag = think.json().is_boolean();
  if (flag) chat.thinking = think.flag();
  chat.variables =
      ordered_json{{flag ? "enable_thinking" : "reasoning_effort", think.json()}}.dump();
}

void read_generate(const Value& body, const ServingFacts& model, CompletionRequest& request) {
  const std::string prompt = body.at("prompt").text();
  const Value given = body.at("system"), raw = body.at("raw");
  const std::string system = given ? given.text() : "";
  const bool is_raw = raw && raw.flag();
  if (is_raw && !system.empty()) given.refuse("is given beside 'raw': write it into the prompt");
  if (is_raw || (!model.has_template && system.empty())) {
    request.prompts = {{{prompt, {}}}};
    return;
  }
  request.chat = request.single_message = true;
  ordered_json messages = ordered_json::array();
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  request.conversation.messages = messages.dump();
  read_think(body.at("think"), request.conversation);
}

}  // namespace

void read_ollama(const Value& body, Route route, const ServingFacts& model,
                 CompletionRequest& request) {
  request.dialect = Dialect::ollama;
  read_options(body.at("options"), model.context, request);
  read_fields(body, route, request);
  read_format(body.at("format"), request);
  const Value content = body.at(request.chat ? "messages" : "prompt");
  request.load_only = content.json().empty() || content.json() == "";
  if (request.load_only) return;
  if (!request.chat) return read_generate(body, model, request);
  read_messages(content, request);
  read_tools(body, true, request.conversation);
  read_think(body.at("think"), request.conversation);
}

}  // namespace mrrope::serve
