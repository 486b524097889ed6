// SPDX-License-Identifier: Apache-2.0
#include "serve/dialects/responses_request.h"

#include "base/text.h"
#include "serve/api/chat_fields.h"
#include "serve/api/sampling_fields.h"

namespace mrrope::serve {

namespace {

std::string text_field(const ordered_json& item, const char* name, const std::string& field) {
  if (!item.contains(name) || !item[name].is_string()) {
    refuse(cat(field, ".", name), "must be a string");
  }
  return item[name].get<std::string>();
}

// A string, or a list of parts with a text, which becomes a list of text parts of a chat.
ordered_json text_parts(const ordered_json& content, const std::string& field) {
  if (content.is_string()) return content;
  if (!content.is_array()) {
    refuse(field, cat("must be a string or a list of text parts, not ", shown(content)));
  }
  ordered_json parts = ordered_json::array();
  for (const ordered_json& part : content) {
    const std::string name = cat(field, "[", parts.size(), "]");
    const ordered_json type = part.is_object() ? part.value("type", ordered_json()) : part;
    if (type != "input_text" && type != "output_text" && type != "text") {
      refuse(name, cat("is of type ", shown(type), ": only text is supported"),
             "unsupported_content");
    }
    parts.push_back({{"type", "text"}, {"text", text_field(part, "text", name)}});
  }
  return parts;
}

// The messages of a chat, and for refusals where each came from.
struct Messages {
  ordered_json list = ordered_json::array();
  struct Origin {
    std::string field;
    std::vector<std::string> calls = {};
  };
  std::vector<Origin> origins = {};

  void add(ordered_json message, const std::string& field) {
    list.push_back(std::move(message));
    origins.push_back({field});
  }
};

// Calls belong to the message of the assistant before them.
void add_call(const ordered_json& item, const std::string& field, Messages& messages) {
  if (messages.list.empty() || messages.list.back()["role"] != "assistant") {
    messages.add({{"role", "assistant"}, {"content", nullptr}}, field);
  }
  messages.origins.back().calls.push_back(field);
  messages.list.back()["tool_calls"].push_back(
      {{"id", text_field(item, "call_id", field)},
       {"type", "function"},
       {"function",
        {{"name", text_field(item, "name", field)},
         {"arguments", text_field(item, "arguments", field)}}}});
}

void add_item(const ordered_json& item, const std::string& field, Messages& messages) {
  if (!item.is_object()) refuse(field, cat("must be an object, not ", shown(item)));
  const ordered_json type = item.value("type", ordered_json("message"));
  if (type == "function_call") return add_call(item, field, messages);
  if (type == "function_call_output") {
    messages.add({{"role", "tool"},
                  {"tool_call_id", text_field(item, "call_id", field)},
                  {"content", text_parts(item.value("output", ordered_json()), field + ".output")}},
                 field);
    return;
  }
  if (type == "reasoning") {
    const ordered_json content = item.value("content", ordered_json());
    if (content.is_null() || content.empty()) return;  // it was only a summary
    std::string text;
    for (const ordered_json& part : content) text += text_field(part, "text", field + ".content");
    messages.add({{"role", "assistant"}, {"content", nullptr}, {"reasoning_content", text}}, field);
    return;
  }
  if (type != "message") {
    refuse(field + ".type",
           cat("is ", shown(type),
               ": only message, function_call, function_call_output and "
               "reasoning are supported"),
           "unsupported_content");
  }
  const ordered_json content =
      text_parts(item.value("content", ordered_json()), field + ".content");
  const ordered_json role = item.value("role", ordered_json());
  // What follows its thoughts.
  if (role == "assistant" && !messages.list.empty()) {
    ordered_json& last = messages.list.back();
    if (last["role"] == "assistant" && last["content"].is_null() && !last.contains("tool_calls")) {
      last["content"] = content;
      return;
    }
  }
  messages.add({{"role", role}, {"content", content}}, field);
}

Messages read_input(Fields& fields) {
  Messages messages;
  if (const auto text = fields.text("instructions")) {
    messages.add({{"role", "system"}, {"content", *text}}, "instructions");
  }
  const ordered_json* input = fields.find("input");
  if (input == nullptr) refuse("input", "is missing: give a text or a list of items");
  if (input->is_string()) {
    messages.add({{"role", "user"}, {"content", *input}}, "input");
    return messages;
  }
  if (!input->is_array() || input->empty()) {
    refuse("input", cat("must be a string or a list of items, not ", shown(*input)));
  }
  for (std::size_t i = 0; i < input->size(); ++i) {
    add_item((*input)[i], cat("input[", i, "]"), messages);
  }
  return messages;
}

// Functions have their members one level higher than in chats.
ordered_json read_functions(Fields& fields) {
  ordered_json tools = ordered_json::array();
  const ordered_json* list = fields.find("tools");
  if (list == nullptr) return tools;
  if (!list->is_array()) refuse("tools", cat("must be a list, not ", shown(*list)));
  for (const ordered_json& tool : *list) {
    const std::string field = cat("tools[", tools.size(), "]");
    const ordered_json type = tool.is_object() ? tool.value("type", ordered_json()) : tool;
    if (type != "function") {
      refuse(field + ".type", cat("is ", shown(type), ": only function is supported"));
    }
    ordered_json function = tool;
    function.erase("type");
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return tools;
}

ordered_json read_choice(Fields& fields) {
  const ordered_json* choice = fields.find("tool_choice");
  if (choice == nullptr) return nullptr;
  if (choice->is_string()) return *choice;
  if (!choice->is_object() || choice->value("type", ordered_json()) != "function") {
    refuse("tool_choice",
           cat(R"(must be auto, none, required or {"type": "function", "name": ...}, not )",
               shown(*choice)));
  }
  return {{"type", "function"}, {"function", {{"name", choice->value("name", ordered_json())}}}};
}

// text.format is what chats call response_format; its schema is one level higher, too.
ordered_json read_format(Fields& fields) {
  const ordered_json* text = fields.object("text");
  if (text == nullptr) return nullptr;
  Fields inner(*text, "text.");
  inner.only("verbosity", "medium", "answers are as long as the model makes them");
  const ordered_json* format = inner.object("format");
  if (format == nullptr) return nullptr;
  if (format->value("type", ordered_json()) != "json_schema") return *format;
  return {{"type", "json_schema"}, {"json_schema", *format}};
}

// What a field of a chat is called in a response.
std::string own_name(const std::string& field, const Messages& messages) {
  for (std::size_t i = 0; i < messages.origins.size(); ++i) {
    const std::string message = cat("messages[", i, "]");
    if (!field.starts_with(message)) continue;
    const Messages::Origin& origin = messages.origins[i];
    for (std::size_t k = 0; k < origin.calls.size(); ++k) {
      const std::string call = cat(message, ".tool_calls[", k, "].function");
      if (field.starts_with(call)) return origin.calls[k] + field.substr(call.size());
    }
    return origin.field + field.substr(message.size());
  }
  if (field == "messages") return "input";
  if (field == "reasoning_effort") return "reasoning.effort";
  if (field.starts_with("response_format")) return "text.format";
  const std::size_t function = field.find(".function");
  if (function == std::string::npos) return field;
  return field.substr(0, function) + field.substr(function + std::string(".function").size());
}

void read_as_chat(ordered_json chat, const Messages& messages, CompletionRequest& request) {
  Fields fields(std::move(chat), "");
  try {
    read_schema(fields, request);
    read_messages(fields, request.conversation);
    read_chat_options(fields, request);
  } catch (const ApiError& error) {
    const std::string start = cat("'", error.param, "' ");
    const std::string what = error.what();
    if (error.param.empty() || !what.starts_with(start)) throw;
    refuse(own_name(error.param, messages), what.substr(start.size()), error.code);
  }
}

void refuse_what_is_kept(Fields& fields) {
  constexpr const char* kKept = "nothing is kept here: send the whole conversation as input";
  fields.only("previous_response_id", nullptr, kKept);
  fields.only("conversation", nullptr, kKept);
  fields.only("prompt", nullptr, kKept);
  fields.only("background", false, kKept);
  fields.only("truncation", "disabled", "prompts are not truncated");
  fields.only("context_management", nullptr, "prompts are not truncated");
  fields.only("top_logprobs", 0, "use /v1/chat/completions for log-probabilities");
  fields.only("max_tool_calls", nullptr, "use parallel_tool_calls");
}

}  // namespace

CompletionRequest parse_responses(std::string_view body, const BodyLimits& limits) {
  Fields fields(body, limits);
  CompletionRequest request;
  request.dialect = Dialect::responses;
  request.chat = true;
  request.model = fields.text("model").value_or("");
  const Messages messages = read_input(fields);
  ordered_json chat = {{"messages", messages.list},
                       {"tools", read_functions(fields)},
                       {"tool_choice", read_choice(fields)},
                       {"response_format", read_format(fields)}};
  if (const ordered_json* parallel = fields.find("parallel_tool_calls")) {
    chat["parallel_tool_calls"] = *parallel;
  }
  if (const ordered_json* reasoning = fields.object("reasoning")) {
    chat["reasoning_effort"] = reasoning->value("effort", ordered_json());
  }
  Sampling usual;  // OpenAI's
  usual.temperature = 1;
  usual.top_p = 1;
  usual.min_p = 0;
  usual.top_k = 0;
  read_sampling(fields, request, usual);
  read_stop(fields, request);
  read_as_chat(std::move(chat), messages, request);
  request.length = fields.whole("max_output_tokens", 1, kMostTokens);
  read_cache(fields, request);
  request.stream = fields.flag("stream");
  request.return_progress = fields.flag("return_progress");
  refuse_what_is_kept(fields);
  check_known_fields(fields);
  request.ignored = fields.ignored();
  return request;
}

}  // namespace mrrope::serve
