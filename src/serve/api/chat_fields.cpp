// SPDX-License-Identifier: Apache-2.0
// Fields that only chats have: messages, tools, and what the template is given.
#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"
#include "serve/api/readers.h"

namespace mrrope::serve {

namespace {

constexpr std::size_t kMaxTools = 1024;
constexpr std::size_t kMaxNameBytes = 256;

template <typename List>
bool is_one_of(const ordered_json& value, const List& list) {
  return std::any_of(list.begin(), list.end(), [&](const char* one) { return value == one; });
}

// The name of a tool, which the grammar and the template repeat.
std::string read_name(const Value& object) {
  const Value name = object.at("name");
  if (!name.json().is_string()) object.refuse("has no name");
  const std::string text = name.text();
  if (text.empty() || text.size() > kMaxNameBytes) {
    name.refuse(cat("has ", text.size(), " bytes: 1 to ", kMaxNameBytes));
  }
  return text;
}

void check_is_function(const Value& type) {
  if (type.json() == "function") return;
  type.refuse(cat("is ", shown(type.json()), ": only function is supported"));
}

ordered_json read_tool(const Value& function) {
  if (!function.json().is_object()) {
    function.refuse("is missing: give its name, description and parameters");
  }
  ordered_json read = {{"name", read_name(function)}};
  const Releaser end{read};
  const Value description = function.at("description"), parameters = function.at("parameters");
  read["description"] = description ? description.text() : "";
  read["parameters"] = parameters ? parameters.object().json() : ordered_json::object();
  return {{"type", "function"}, {"function", std::move(read)}};
}

ordered_json read_tool_list(const Value& list, bool nested) {
  ordered_json tools = ordered_json::array();
  if (!list) return tools;
  if (list.list().size() > kMaxTools) {
    list.refuse(cat("lists ", list.size(), " tools: at most ", kMaxTools));
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Value tool = list[i];
    check_is_function(tool.object().at("type"));
    const Value function = nested ? tool.at("function") : tool;
    tools.push_back(read_tool(function));
    const ordered_json& name = tools.back()["function"]["name"];
    for (std::size_t j = 0; j < i; ++j) {
      if (tools[j]["function"]["name"] != name) continue;
      function.at("name").refuse(cat("is ", shown(name), ", as that of tools[", j, "]"));
    }
  }
  return tools;
}

ordered_json read_message(const Value& message) {
  const std::string role = read_role(message);
  const auto given = [&](const char* field) { return !message.at(field).json().empty(); };
  for (const char* field : {"function_call", "audio", "images"}) {
    if (!given(field)) continue;
    message.at(field).refuse("is not supported: only text and tool_calls are",
                             "unsupported_content");
  }
  const Value content = message.at("content");
  if (!content && role != "assistant") content.refuse("is missing");
  ordered_json read = {{"role", role}, {"content", content ? read_content(content) : ""}};
  // ollama's names come second.
  static constexpr std::array<std::array<const char*, 2>, 5> kNames = {
      {{"reasoning_content", "reasoning_content"},
       {"reasoning_content", "thinking"},
       {"name", "name"},
       {"name", "tool_name"},
       {"tool_call_id", "tool_call_id"}}};
  for (const auto& [as, field] : kNames) {
    if (given(field)) read[as] = message.at(field).text();
  }
  if (!given("tool_calls")) return read;
  const Value calls = message.at("tool_calls");
  if (role != "assistant") calls.refuse(cat("are made by the assistant, not by role ", role));
  read["tool_calls"] = ordered_json::array();
  for (std::size_t i = 0; i < calls.list().size(); ++i) {
    const Value call = calls[i], type = call.object().at("type"), id = call.at("id");
    if (type) check_is_function(type);
    ordered_json one = read_call(call.at("function"));
    if (id.json().is_string()) one["id"] = id.json();
    read["tool_calls"].push_back(std::move(one));
  }
  return read;
}

}  // namespace

std::string read_role(const Value& message) {
  static constexpr std::array kRoles = {"system", "developer", "user", "assistant", "tool"};
  const Value role = message.object().at("role");
  if (!role.json().is_string()) message.refuse("has no role");
  if (!is_one_of(role.json(), kRoles)) {
    role.refuse(
        cat("is ", shown(role.json()), ": choose system, developer, user, assistant or tool"));
  }
  return role.text();
}

std::string read_content(const Value& content, std::initializer_list<const char*> types) {
  if (content.json().is_string()) return content.text();
  if (!content.json().is_array()) content.refuse_type("a string or a list of text parts");
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const Value part = content[i], type = part.at("type");
    if (!type) part.refuse("must be an object with a type");
    if (!is_one_of(type.json(), types)) {
      part.refuse(cat("is of type ", shown(type.json()), ": only text is supported"),
                  "unsupported_content");
    }
    if (!part.at("text").json().is_string()) part.refuse("has no text");
    text += (i > 0 ? "\n" : "") + part.at("text").text();
  }
  return text;
}

ordered_json read_call(const Value& function) {
  if (!function.json().is_object()) function.refuse("is missing: give its name and arguments");
  const std::string name = read_name(function);
  const Value arguments = function.at("arguments");
  if (arguments && !arguments.json().is_string() && !arguments.json().is_object()) {
    arguments.refuse_type("a string of JSON or an object");
  }
  const std::string text = !arguments                     ? "{}"
                           : arguments.json().is_string() ? arguments.text()
                                                          : arguments.json().dump();
  return {{"type", "function"}, {"function", {{"name", name}, {"arguments", text}}}};
}

void read_messages(const Value& messages, CompletionRequest& request) {
  if (!messages.json().is_array() || messages.size() == 0 || messages.size() > kMaxMessages) {
    messages.refuse_type(cat("a list of 1 to ", kMaxMessages, " messages"));
  }
  ordered_json read = ordered_json::array();
  const Releaser end{read};
  for (std::size_t i = 0; i < messages.size(); ++i) read.push_back(read_message(messages[i]));
  request.conversation.messages = read.dump();
}

void read_tools(const Value& body, bool nested, engine::ChatInputs& chat) {
  ordered_json tools = read_tool_list(body.at("tools"), nested);
  const Releaser end{tools};
  const Value choice = body.at("tool_choice");
  if (choice.json().is_string()) {
    static constexpr std::array kChoices = {"auto", "none", "required"};
    chat.tool_choice = choice.text();
    if (!is_one_of(choice.json(), kChoices)) {
      choice.refuse(cat("is ", shown(choice.json()), ": choose auto, none, required or a tool"));
    }
  } else if (choice) {
    const Value holder = nested ? choice.at("function") : choice;
    if (choice.at("type").json() != "function" || !holder.json().is_object()) {
      choice.refuse_type(cat(R"(auto, none, required or {"type": "function", )",
                             nested ? R"("function": {"name": ...}})" : R"("name": ...})"));
    }
    const std::string name = read_name(holder);
    ordered_json one = ordered_json::array();
    for (const ordered_json& tool : tools) {
      if (tool["function"]["name"] == name) one.push_back(tool);
    }
    if (one.empty()) choice.refuse(cat("names ", shown(name), ", which is not in tools"));
    tools = std::move(one);
    chat.tool_choice = "required";
    // One call of that tool, unless more are asked for.
    if (!chat.parallel_tool_calls) chat.parallel_tool_calls = false;
  }
  if (tools.empty() && chat.tool_choice == "required") {
    choice.refuse("is required, but there are no tools");
  }
  if (!tools.empty()) chat.tools = tools.dump();
}

void read_variables(const Value& given, const Value& effort, engine::ChatInputs& chat) {
  ordered_json variables = given ? given.object().json() : ordered_json::object();
  const Releaser end{variables};
  if (const Value thinking = given.at("enable_thinking")) chat.thinking = thinking.flag();
  if (effort && effort.text() != "none") variables["reasoning_effort"] = effort.json();
  if (effort.json() == "none") chat.thinking = false;
  if (!variables.empty()) chat.variables = variables.dump();
}

}  // namespace mrrope::serve
