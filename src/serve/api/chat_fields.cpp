// SPDX-License-Identifier: Apache-2.0
#include "serve/api/chat_fields.h"

#include <algorithm>
#include <array>

#include "base/json_release.h"
#include "base/text.h"

namespace mrrope::serve {

namespace {

constexpr std::size_t kMostMessages = 16384;
constexpr std::size_t kMostTools = 1024;
constexpr std::size_t kLongestName = 256;  // bytes

// A string, or a list of text parts.
std::string read_content(const ordered_json& content, const std::string& field) {
  if (content.is_null()) return {};
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    refuse(field, cat("must be a string or a list of text parts, not ", shown(content)));
  }
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const ordered_json& part = content[i];
    const std::string name = cat(field, "[", i, "]");
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) {
      refuse(name, "must be an object with a type");
    }
    const auto& type = part["type"].get_ref<const std::string&>();
    if (type != "text") {
      refuse(name, cat("is of type ", shown(part["type"]), ": only text is supported"),
             "unsupported_content");
    }
    if (!part.contains("text") || !part["text"].is_string()) refuse(name, "has no text");
    if (i > 0) text += '\n';
    text += part["text"].get_ref<const std::string&>();
  }
  return text;
}

// A name that a tool may have. The grammar and the template repeat it.
std::string read_name(const ordered_json& object, const std::string& field) {
  if (!object.contains("name") || !object["name"].is_string()) {
    refuse(field, "has no name");
  }
  const auto& name = object["name"].get_ref<const std::string&>();
  if (name.empty() || name.size() > kLongestName) {
    refuse(field + ".name", cat("has ", name.size(), " bytes: 1 to ", kLongestName));
  }
  return name;
}

ordered_json read_tool_call(const ordered_json& call, const std::string& field) {
  if (!call.is_object()) refuse(field, cat("must be an object, not ", shown(call)));
  if (call.value("type", ordered_json("function")) != "function") {
    refuse(field + ".type", cat("is ", shown(call["type"]), ": only function is supported"));
  }
  if (!call.contains("function") || !call["function"].is_object()) {
    refuse(field + ".function", "is missing: give its name and arguments");
  }
  const ordered_json& function = call["function"];
  const std::string name = read_name(function, field + ".function");
  const ordered_json arguments = function.value("arguments", ordered_json("{}"));
  if (!arguments.is_string() && !arguments.is_object()) {
    refuse(field + ".function.arguments",
           cat("must be a string of JSON or an object, not ", shown(arguments)));
  }
  const std::string text = arguments.is_string() ? arguments.get<std::string>() : arguments.dump();
  ordered_json read = {{"type", "function"}, {"function", {{"name", name}, {"arguments", text}}}};
  if (call.contains("id") && call["id"].is_string()) read["id"] = call["id"];
  return read;
}

ordered_json read_message(const ordered_json& message, const std::string& name) {
  static constexpr std::array kRoles = {"system", "developer", "user", "assistant", "tool"};
  if (!message.is_object()) refuse(name, cat("must be an object, not ", shown(message)));
  if (!message.contains("role") || !message["role"].is_string()) refuse(name, "has no role");
  const auto& role = message["role"].get_ref<const std::string&>();
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    refuse(name + ".role", cat("is ", shown(message["role"]),
                               ": choose system, developer, user, assistant or tool"));
  }
  const auto given = [&](const char* field) {
    return message.contains(field) && !message[field].is_null() && !message[field].empty();
  };
  for (const char* field : {"function_call", "audio", "images"}) {
    if (given(field)) {
      refuse(cat(name, ".", field), "is not supported: only text and tool_calls are",
             "unsupported_content");
    }
  }
  const bool has_content = message.contains("content") && !message["content"].is_null();
  if (!has_content && role != "assistant") refuse(name + ".content", "is missing");
  ordered_json read = {
      {"role", role},
      {"content", has_content ? read_content(message["content"], name + ".content") : ""}};
  // ollama's names come second.
  static constexpr std::array<std::array<const char*, 2>, 5> kTexts = {
      {{"reasoning_content", "reasoning_content"},
       {"reasoning_content", "thinking"},
       {"name", "name"},
       {"name", "tool_name"},
       {"tool_call_id", "tool_call_id"}}};
  for (const auto& [as, field] : kTexts) {
    if (!given(field)) continue;
    if (!message[field].is_string()) {
      refuse(cat(name, ".", field), cat("must be a string, not ", shown(message[field])));
    }
    read[as] = message[field];
  }
  if (given("tool_calls")) {
    const std::string field = name + ".tool_calls";
    if (role != "assistant") refuse(field, cat("are made by the assistant, not by role ", role));
    if (!message["tool_calls"].is_array()) {
      refuse(field, cat("must be a list, not ", shown(message["tool_calls"])));
    }
    read["tool_calls"] = ordered_json::array();
    for (const ordered_json& call : message["tool_calls"]) {
      read["tool_calls"].push_back(
          read_tool_call(call, cat(field, "[", read["tool_calls"].size(), "]")));
    }
  }
  return read;
}

ordered_json read_tool(const ordered_json& tool, const std::string& field) {
  if (!tool.is_object()) refuse(field, cat("must be an object, not ", shown(tool)));
  if (tool.value("type", ordered_json()) != "function") {
    refuse(field + ".type",
           cat("is ", shown(tool.value("type", ordered_json())), ": only function is supported"));
  }
  if (!tool.contains("function") || !tool["function"].is_object()) {
    refuse(field + ".function", "is missing: give its name, description and parameters");
  }
  const ordered_json& function = tool["function"];
  ordered_json read = {{"name", read_name(function, field + ".function")}};
  const Releaser end{read};
  const ordered_json description = function.value("description", ordered_json());
  if (!description.is_null() && !description.is_string()) {
    refuse(field + ".function.description", cat("must be a string, not ", shown(description)));
  }
  read["description"] = description.is_string() ? description : ordered_json("");
  read["parameters"] = ordered_json::object();
  if (const auto given = function.find("parameters");
      given != function.end() && !given->is_null()) {
    if (!given->is_object()) {
      refuse(field + ".function.parameters", cat("must be a JSON schema, not ", shown(*given)));
    }
    read["parameters"] = *given;
  }
  return {{"type", "function"}, {"function", std::move(read)}};
}

// The name in {"type": "function", "function": {"name": ...}}.
std::string chosen_tool(const ordered_json& choice) {
  if (choice.is_object() && choice.value("type", ordered_json()) == "function" &&
      choice.contains("function") && choice["function"].is_object()) {
    return read_name(choice["function"], "tool_choice.function");
  }
  refuse("tool_choice", cat(R"(must be auto, none, required or {"type": "function", "function": )",
                            R"({"name": ...}}, not )", shown(choice)));
}

}  // namespace

void read_messages(Fields& fields, ChatRequest& chat) {
  const ordered_json* messages = fields.find("messages");
  if (messages == nullptr) refuse("messages", "is missing: give at least one message");
  if (!messages->is_array() || messages->empty() || messages->size() > kMostMessages) {
    refuse("messages",
           cat("must be a list of 1 to ", kMostMessages, " messages, not ", shown(*messages)));
  }
  ordered_json read = ordered_json::array();
  const Releaser end{read};
  for (std::size_t i = 0; i < messages->size(); ++i) {
    read.push_back(read_message((*messages)[i], cat("messages[", i, "]")));
  }
  chat.messages = read.dump();
}

void read_tools(Fields& fields, ChatRequest& chat) {
  ordered_json tools = ordered_json::array();
  const Releaser end{tools};
  if (const ordered_json* list = fields.find("tools")) {
    if (!list->is_array() || list->size() > kMostTools) {
      refuse("tools", cat("must be a list of up to ", kMostTools, " tools, not ", shown(*list)));
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string field = cat("tools[", i, "]");
      tools.push_back(read_tool((*list)[i], field));
      const ordered_json& name = tools.back()["function"]["name"];
      for (std::size_t j = 0; j < i; ++j) {
        if (tools[j]["function"]["name"] == name) {
          refuse(field + ".function.name", cat("is ", shown(name), ", as that of tools[", j, "]"));
        }
      }
    }
  }
  if (const ordered_json* choice = fields.find("tool_choice")) {
    if (choice->is_string()) {
      chat.tool_choice = choice->get<std::string>();
      static constexpr std::array kChoices = {"auto", "none", "required"};
      if (std::find(kChoices.begin(), kChoices.end(), chat.tool_choice) == kChoices.end()) {
        refuse("tool_choice",
               cat("is ", shown(*choice), ": choose auto, none, required or a tool"));
      }
    } else {
      const std::string name = chosen_tool(*choice);
      ordered_json one = ordered_json::array();
      for (const ordered_json& tool : tools) {
        if (tool["function"]["name"] == name) one.push_back(tool);
      }
      if (one.empty()) refuse("tool_choice", cat("names ", shown(name), ", which is not in tools"));
      tools = std::move(one);
      chat.tool_choice = "required";
      chat.parallel_tool_calls = false;  // one call of that tool, unless more are asked for
    }
  }
  if (tools.empty() && chat.tool_choice == "required") {
    refuse("tool_choice", "is required, but there are no tools");
  }
  if (!tools.empty()) chat.tools = tools.dump();
  if (const ordered_json* parallel = fields.find("parallel_tool_calls")) {
    if (!parallel->is_boolean()) {
      refuse("parallel_tool_calls", cat("must be true or false, not ", shown(*parallel)));
    }
    chat.parallel_tool_calls = parallel->get<bool>();
  }
}

void read_chat_options(Fields& fields, CompletionRequest& request) {
  ChatRequest& chat = request.conversation;
  read_tools(fields, chat);
  const bool calls = !chat.tools.empty() && chat.tool_choice != "none";
  if (calls && !request.schema.empty()) {
    refuse("response_format", "is given beside tools: give one of them, or tool_choice none");
  }
  if (calls && !request.sampling.grammar.text.empty()) {
    refuse("grammar", "is given beside tools: give one of them, or tool_choice none");
  }
  if (calls && request.sampling.ignore_end) {
    refuse("ignore_eos", "is true, but an answer with tool calls ends after them");
  }
  ordered_json variables = ordered_json::object();
  const Releaser end{variables};
  if (const ordered_json* given = fields.object("chat_template_kwargs")) variables = *given;
  const ordered_json thinking = variables.value("enable_thinking", ordered_json(true));
  if (!thinking.is_boolean()) {
    refuse("chat_template_kwargs.enable_thinking",
           cat("must be true or false, not ", shown(thinking)));
  }
  chat.thinking = thinking.get<bool>();
  if (const auto effort = fields.text("reasoning_effort")) {
    if (*effort == "none") {
      chat.thinking = false;
    } else {
      variables["reasoning_effort"] = *effort;
    }
  }
  if (!variables.empty()) chat.variables = variables.dump();
  const std::string format = fields.text("reasoning_format").value_or("auto");
  if (format != "auto" && format != "none" && format != "deepseek") {
    refuse("reasoning_format", cat("is ", shown(format), ": choose auto, deepseek or none"));
  }
  chat.split_reasoning = format != "none";
  const bool continues = fields.flag("continue_final_message");
  const ordered_json* adds = fields.find("add_generation_prompt");
  chat.add_generation_prompt = fields.flag("add_generation_prompt", !continues);
  if (continues && adds != nullptr && chat.add_generation_prompt) {
    refuse("continue_final_message",
           "and 'add_generation_prompt' are both true: an answer either continues the last message "
           "or starts one");
  }
  chat.continue_final = continues;
  if (continues) {
    const ordered_json messages = ordered_json::parse(chat.messages);
    const ordered_json& last = messages.back();
    if (last["role"] != "assistant" || last.contains("tool_calls")) {
      refuse("continue_final_message",
             "is true, but the last message is not a text of the assistant");
    }
  }
}

}  // namespace mrrope::serve
