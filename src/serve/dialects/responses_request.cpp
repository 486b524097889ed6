// SPDX-License-Identifier: Apache-2.0
// The bodies of OpenAI's /v1/responses, read as chats. Nothing is kept between requests: the input
// is the whole conversation.
#include "base/json.h"
#include "base/text.h"
#include "serve/api/readers.h"

namespace mrrope::serve {

namespace {

std::string read_parts(const Value& content) {
  return read_content(content, {"input_text", "output_text", "text"});
}

bool is_assistant(const ordered_json& messages) {
  return !messages.empty() && messages.back()["role"] == "assistant";
}

// Calls belong to the message of the assistant before them.
void add_call(const Value& item, ordered_json& messages) {
  const std::string id = item.at("call_id").text();
  item.at("arguments").text();
  if (!is_assistant(messages)) messages.push_back({{"role", "assistant"}, {"content", ""}});
  ordered_json call = read_call(item);
  call["id"] = id;
  messages.back()["tool_calls"].push_back(std::move(call));
}

void add_reasoning(const Value& content, ordered_json& messages) {
  if (content.json().empty()) return;  // it was only a summary
  std::string text;
  for (std::size_t i = 0; i < content.list().size(); ++i) text += content[i].at("text").text();
  messages.push_back({{"role", "assistant"}, {"content", ""}, {"reasoning_content", text}});
}

void add_item(const Value& item, ordered_json& messages) {
  const Value type = item.object().at("type");
  if (type.json() == "function_call") return add_call(item, messages);
  if (type.json() == "reasoning") return add_reasoning(item.at("content"), messages);
  if (type.json() == "function_call_output") {
    messages.push_back({{"role", "tool"},
                        {"content", read_parts(item.at("output"))},
                        {"tool_call_id", item.at("call_id").text()}});
    return;
  }
  if (type && type.json() != "message") {
    type.refuse(cat("is ", shown(type.json()),
                    ": only message, function_call, function_call_output and reasoning are "
                    "supported"),
                "unsupported_content");
  }
  const std::string content = read_parts(item.at("content"));
  const std::string role = read_role(item);
  // What follows its reasoning.
  if (role == "assistant" && is_assistant(messages) && messages.back()["content"] == "" &&
      messages.back().contains("reasoning_content") && !messages.back().contains("tool_calls")) {
    messages.back()["content"] = content;
    return;
  }
  messages.push_back({{"role", role}, {"content", content}});
}

}  // namespace

void read_responses(const Value& body, CompletionRequest& request) {
  request.dialect = Dialect::responses;
  ordered_json messages = ordered_json::array();
  const Releaser end{messages};
  if (const Value system = body.at("instructions")) {
    messages.push_back({{"role", "system"}, {"content", system.text()}});
  }
  const Value input = body.at("input");
  if (input.json().is_string()) {
    messages.push_back({{"role", "user"}, {"content", input.text()}});
  } else if (!input.json().is_array() || input.size() == 0 || input.size() > kMaxMessages) {
    input.refuse_type(cat("a string or a list of 1 to ", kMaxMessages, " items"));
  } else {
    for (std::size_t i = 0; i < input.size(); ++i) add_item(input[i], messages);
  }
  if (messages.empty()) input.refuse("has no message");
  request.conversation.messages = messages.dump();
  read_tools(body, false, request.conversation);
  if (const Value text = body.at("text")) {
    const Value verbosity = text.object().at("verbosity"), format = text.at("format");
    if (verbosity && verbosity.json() != "medium" && verbosity.json() != "") {
      verbosity.refuse("is not supported: answers are as long as the model makes them",
                       "unsupported_parameter");
    }
    if (format) read_response_format(format, false, request);
  }
  static const ordered_json none;
  const Value reasoning = body.at("reasoning");
  if (reasoning) reasoning.object();
  read_variables({none, {}}, reasoning.at("effort"), request.conversation);
}

}  // namespace mrrope::serve
