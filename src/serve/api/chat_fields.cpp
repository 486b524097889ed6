// SPDX-License-Identifier: Apache-2.0
// The bodies of chats: OpenAI's chats and responses, ollama's, and Anthropic's messages. All become
// messages and tools as OpenAI's chats have them.
#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "serve/api/fields.h"

namespace mrrope::serve {

namespace {

constexpr std::size_t kMaxMessages = 16384;  // and parts of one
constexpr std::size_t kMaxTools = 1024;
constexpr std::size_t kMaxNameBytes = 256;

// The name of a tool, which the grammar and the template repeat.
std::string read_name(const Value& object) {
  const Value name = object.at("name");
  if (!name.json().is_string()) object.refuse("has no name");
  std::string text = name.text();
  name.refuse_if(text.empty() || text.size() > kMaxNameBytes,
                 cat("has ", text.size(), " bytes: 1 to ", kMaxNameBytes));
  return text;
}

void check_is_function(const Value& type) {
  if (type.json() == "function") return;
  type.refuse(cat("is ", shown(type.json()), ": only function is supported"));
}

// How tools are written: in a member `function`, beside their type, or as Anthropic has them.
enum class ToolForm { nested, flat, anthropic };

ordered_json read_tool(const Value& function, ToolForm form) {
  function.refuse_if(!function.json().is_object(),
                     "is missing: give its name, description and parameters");
  ordered_json read = {{"name", read_name(function)}};
  const Releaser end{read};
  const bool anthropic = form == ToolForm::anthropic;
  const Value parameters = function.at(anthropic ? "input_schema" : "parameters");
  read["description"] = function.at("description").text_or("");
  read["parameters"] =
      parameters || anthropic ? parameters.object().json() : ordered_json::object();
  return {{"type", "function"}, {"function", std::move(read)}};
}

// Returns the name of the only tool that may be called; empty: any.
std::string read_tool_choice(const Value& choice, ToolForm form, engine::ChatInputs& chat) {
  if (!choice) return {};
  if (form == ToolForm::anthropic) {
    const std::string type = choice.object().at("type").choice({"auto", "any", "tool", "none"});
    if (choice.at("disable_parallel_tool_use").flag_or(false)) chat.parallel_tool_calls = false;
    if (type == "tool") return read_name(choice);
    chat.tool_choice = type == "any" ? "required" : type;
    return {};
  }
  if (choice.json().is_string()) {
    chat.tool_choice = choice.choice({"auto", "none", "required"});
    return {};
  }
  const bool nested = form == ToolForm::nested;
  const Value holder = nested ? choice.at("function") : choice;
  if (choice.at("type").json() != "function" || !holder.json().is_object()) {
    choice.refuse_type(cat(R"(auto, none, required or {"type": "function", )",
                           nested ? R"("function": {"name": ...}})" : R"("name": ...})"));
  }
  return read_name(holder);
}

// tools and tool_choice.
void read_tools(const Value& body, ToolForm form, CompletionRequest& request) {
  engine::ChatInputs& chat = request.conversation;
  ordered_json tools = ordered_json::array();
  const Releaser end{tools};
  const auto find = [&](const std::string& name) {
    return std::find_if(tools.begin(), tools.end(),
                        [&](const ordered_json& tool) { return tool["function"]["name"] == name; });
  };
  const Value list = body.at("tools"), choice = body.at("tool_choice");
  for (const Value& tool : list ? list.entries(kMaxTools, "tools") : std::vector<Value>()) {
    const Value type = tool.object().at("type");
    if (form != ToolForm::anthropic) {
      check_is_function(type);
    } else if (type && type.json() != "custom") {
      type.refuse(cat("is ", shown(type.json()),
                      ": only custom tools are supported, which the client runs"));
    }
    const Value function = form == ToolForm::nested ? tool.at("function") : tool;
    ordered_json read = read_tool(function, form);
    const Releaser end_of_tool{read};
    const std::string name = read["function"]["name"];
    if (const auto same = find(name); same != tools.end()) {
      function.at("name").refuse(
          cat("is ", shown(name), ", as that of tools[", same - tools.begin(), "]"));
    }
    tools.push_back(std::move(read));
  }
  if (const std::string name = read_tool_choice(choice, form, chat); !name.empty()) {
    const auto found = find(name);
    if (found == tools.end()) choice.refuse(cat("names ", shown(name), ", which is not in tools"));
    tools = ordered_json::array({*found});
    chat.tool_choice = "required";
    // One call of that tool, unless more are asked for.
    if (!chat.parallel_tool_calls) chat.parallel_tool_calls = false;
  }
  choice.refuse_if(tools.empty() && chat.tool_choice == "required",
                   "requires a call, but there are no tools");
  if (tools.empty()) return;
  chat.tools = tools.dump();
  if (chat.tool_choice == "none") return;
  for (const ordered_json& tool : tools) request.callable.push_back(tool["function"]["name"]);
}

std::string read_role(const Value& message) {
  const Value role = message.object().at("role");
  if (!role.json().is_string()) message.refuse("has no role");
  return role.choice({"system", "developer", "user", "assistant", "tool"});
}

// A string, or a list of parts that have a text.
std::string read_content(const Value& content) {
  if (content.json().is_string()) return content.text();
  if (!content.json().is_array()) content.refuse_type("a string or a list of text parts");
  std::string text;
  const std::vector<Value> parts = content.entries(kMaxMessages, "parts");
  for (const Value& part : parts) {
    const Value type = part.at("type");
    if (!type) part.refuse("must be an object with a type");
    part.refuse_if(
        type.json() != "text" && type.json() != "input_text" && type.json() != "output_text",
        cat("is of type ", shown(type.json()), ": only text is supported"), "unsupported_content");
    if (!part.at("text").json().is_string()) part.refuse("has no text");
    text += (&part == parts.data() ? "" : "\n") + part.at("text").text();
  }
  return text;
}

// A call of a tool: an object with a name and arguments.
ordered_json read_call(const Value& function) {
  if (!function.json().is_object()) function.refuse("is missing: give its name and arguments");
  const std::string name = read_name(function);
  const Value arguments = function.at("arguments");
  if (arguments && !arguments.json().is_string() && !arguments.json().is_object()) {
    arguments.refuse_type("a string of JSON or an object");
  }
  const std::string text =
      arguments.json().is_object() ? arguments.json().dump() : arguments.text_or("{}");
  return {{"type", "function"}, {"function", {{"name", name}, {"arguments", text}}}};
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
  static constexpr std::pair<const char*, const char*> kNames[] = {
      {"reasoning_content", "reasoning_content"},
      {"reasoning_content", "thinking"},  // ollama's
      {"name", "name"},
      {"name", "tool_name"},  // ollama's
      {"tool_call_id", "tool_call_id"}};
  for (const auto& [as, field] : kNames) {
    if (given(field)) read[as] = message.at(field).text();
  }
  if (!given("tool_calls")) return read;
  const Value calls = message.at("tool_calls");
  if (role != "assistant") calls.refuse(cat("are made by the assistant, not by role ", role));
  for (const Value& call : calls.entries(kMaxTools, "calls")) {
    const Value type = call.object().at("type"), id = call.at("id");
    if (type) check_is_function(type);
    ordered_json one = read_call(call.at("function"));
    if (id.json().is_string()) one["id"] = id.json();
    read["tool_calls"].push_back(std::move(one));
  }
  return read;
}

// Variables of the template: chat_template_kwargs and reasoning_effort.
void read_variables(const Value& given, const Value& effort, engine::ChatInputs& chat) {
  ordered_json variables = given ? given.object().json() : ordered_json::object();
  const Releaser end{variables};
  chat.thinking = given.at("enable_thinking").flag_or(chat.thinking);
  if (effort && effort.text() != "none") variables["reasoning_effort"] = effort.json();
  if (effort.json() == "none") chat.thinking = false;
  if (!variables.empty()) chat.variables = variables.dump();
}

// ---- OpenAI's responses. Nothing is kept between requests: the input is the whole conversation.

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
  for (const Value& part : content.entries(kMaxMessages, "parts")) text += part.at("text").text();
  messages.push_back({{"role", "assistant"}, {"content", ""}, {"reasoning_content", text}});
}

void add_item(const Value& item, ordered_json& messages) {
  const Value type = item.object().at("type");
  if (type.json() == "function_call") return add_call(item, messages);
  if (type.json() == "reasoning") return add_reasoning(item.at("content"), messages);
  if (type.json() == "function_call_output") {
    messages.push_back({{"role", "tool"},
                        {"content", read_content(item.at("output"))},
                        {"tool_call_id", item.at("call_id").text()}});
    return;
  }
  type.refuse_if(type && type.json() != "message",
                 cat("is ", shown(type.json()),
                     ": only message, function_call, function_call_output and reasoning are "
                     "supported"),
                 "unsupported_content");
  const std::string content = read_content(item.at("content"));
  const std::string role = read_role(item);
  // What follows its reasoning.
  if (role == "assistant" && is_assistant(messages) && messages.back()["content"] == "" &&
      messages.back().contains("reasoning_content") && !messages.back().contains("tool_calls")) {
    messages.back()["content"] = content;
    return;
  }
  messages.push_back({{"role", role}, {"content", content}});
}

// ---- ollama's.

void read_options(const Value& given, std::int64_t context, CompletionRequest& request) {
  if (!given) return;
  read_fields(given.object(), Route::ollama_options, request);
  // -1 is without end, -2 up to the end of the context; here both are the latter.
  if (const Value length = given.at("num_predict"); length && length.json() != -2) {
    request.length = read_length(length);
  }
  const Value wanted = given.at("num_ctx");
  wanted.refuse_if(wanted && wanted.whole(1, kMaxTokens) > context,
                   cat("is ", shown(wanted.json()), ", but the context has ", context,
                       " tokens: start the server with a larger --ctx"));
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
  const bool flag = think.json().is_boolean();
  if (!flag && !think.json().is_string()) think.refuse_type("true, false or an effort");
  if (flag) chat.thinking = think.flag();
  chat.variables =
      ordered_json{{flag ? "enable_thinking" : "reasoning_effort", think.json()}}.dump();
}

void read_generate(const Value& body, bool has_template, CompletionRequest& request) {
  const std::string prompt = body.at("prompt").text();
  const std::string system = body.at("system").text_or("");
  const bool raw = body.at("raw").flag_or(false);
  if (raw && !system.empty()) refuse("system", "is given beside 'raw': write it into the prompt");
  if (raw || (!has_template && system.empty())) {
    request.prompts = {{{prompt, {}}}};
    return;
  }
  request.chat = true;
  ordered_json messages = ordered_json::array();
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  request.conversation.messages = messages.dump();
}

// ---- Anthropic's.

struct Turns {
  ordered_json messages = ordered_json::array();
  const Releaser<ordered_json> end{messages};
  std::map<std::string, std::string> tools = {};  // by the ids of their calls

  // The last message, if it is of this role, or a new one: turns of one role in a row are one.
  ordered_json& of(const std::string& role) {
    if (messages.empty() || messages.back()["role"] != role) {
      messages.push_back({{"role", role}, {"content", ""}});
    }
    return messages.back();
  }
};

void add_line(ordered_json& message, const char* field, const std::string& text) {
  if (!message.contains(field)) message[field] = "";
  auto& all = message[field].get_ref<std::string&>();
  if (!all.empty()) all += "\n";
  all += text;
}

void add_tool_use(const Value& block, Turns& turns) {
  const std::string id = block.at("id").text(), name = read_name(block);
  const std::string input = block.at("input").object().json().dump();
  turns.of("assistant")["tool_calls"].push_back(
      {{"type", "function"}, {"id", id}, {"function", {{"name", name}, {"arguments", input}}}});
  turns.tools[id] = name;
}

void add_tool_result(const Value& block, Turns& turns) {
  const Value id = block.at("tool_use_id"), content = block.at("content");
  const auto tool = turns.tools.find(id.text());
  id.refuse_if(tool == turns.tools.end(),
               cat("is ", shown(id.json()), ", and no tool_use before it has that id"));
  const std::string text = content ? read_content(content) : "";
  const bool failed = block.at("is_error").flag_or(false);  // messages have no field for that
  turns.messages.push_back({{"role", "tool"},
                            {"content", failed ? "Error: " + text : text},
                            {"tool_call_id", tool->first},
                            {"name", tool->second}});
}

void add_block(const std::string& role, const Value& block, Turns& turns) {
  const std::string type = block.object().at("type").text();
  const bool user = role == "user", assistant = role == "assistant";
  if (type == "text") return add_line(turns.of(role), "content", block.at("text").text());
  if (user && type == "tool_result") return add_tool_result(block, turns);
  if (assistant && type == "tool_use") return add_tool_use(block, turns);
  if (assistant && type == "thinking") {
    return add_line(turns.of(role), "reasoning_content", block.at("thinking").text());
  }
  if (assistant && type == "redacted_thinking") return;  // only its maker can read it
  const char* const rest = user ? " and tool_result" : assistant ? ", thinking and tool_use" : "";
  block.refuse(cat("is of type ", shown(type), ": only text", rest, " can be read here"),
               "unsupported_content");
}

// Claude Code begins with a block for its maker's accounts, which is another one in every request:
// nothing after it would be found in the cache.
void add_system(const Value& system, Turns& turns, std::vector<std::string>& ignored) {
  if (!system || system.json() == "") return;
  if (system.json().is_string()) return add_line(turns.of("system"), "content", system.text());
  if (!system.json().is_array()) system.refuse_type("a string or a list of text blocks");
  for (const Value& block : system.entries(kMaxMessages, "blocks")) {
    const Value text = block.at("text");
    if (text.json().is_string() && text.text().starts_with("x-anthropic-billing-header:")) {
      ignored.push_back(block.path());
    } else {
      add_block("system", block, turns);
    }
  }
}

void add_turn(const Value& message, Turns& turns) {
  const std::string role = message.object().at("role").choice({"user", "assistant", "system"});
  const Value content = message.at("content");
  if (content.json().is_string()) return add_line(turns.of(role), "content", content.text());
  if (!content.json().is_array()) content.refuse_type("a string or a list of blocks");
  if (content.json().empty()) content.refuse("is empty: give a text, or blocks");
  for (const Value& block : content.entries(kMaxMessages, "blocks")) add_block(role, block, turns);
}

void read_thinking(const Value& thinking, CompletionRequest& request) {
  if (!thinking) return;
  const std::string type =
      thinking.object().at("type").choice({"enabled", "adaptive", "between_tools", "disabled"});
  request.conversation.thinking = type != "disabled";
  for (const char* name : {"budget_tokens", "display"}) {
    if (thinking.at(name)) request.ignored.push_back(thinking.at(name).path());
  }
}

}  // namespace

void read_messages(const Value& messages, CompletionRequest& request) {
  if (!messages.json().is_array() || messages.json().empty()) {
    messages.refuse_type("a list of messages");
  }
  ordered_json read = ordered_json::array();
  const Releaser end{read};
  for (const Value& message : messages.entries(kMaxMessages, "messages")) {
    read.push_back(read_message(message));
  }
  request.conversation.messages = read.dump();
}

void read_chat(const Value& body, const BodyLimits&, CompletionRequest& request) {
  engine::ChatInputs& chat = request.conversation;
  const Value messages = body.at("messages");
  if (!messages) messages.refuse("is missing: give at least one message");
  read_tools(body, ToolForm::nested, request);
  read_variables(body.at("chat_template_kwargs"), body.at("reasoning_effort"), chat);
  const Value continues = body.at("continue_final_message");
  chat.continue_final = continues.flag_or(false);
  chat.add_generation_prompt = body.at("add_generation_prompt").flag_or(!chat.continue_final);
  continues.refuse_if(
      chat.continue_final && chat.add_generation_prompt,
      "and 'add_generation_prompt' are both true: an answer either continues the last message "
      "or starts one");
  const Value last(messages.json().back(), {});
  continues.refuse_if(chat.continue_final && (last.at("role").json() != "assistant" ||
                                              !last.at("tool_calls").json().empty()),
                      "is true, but the last message is not a text of the assistant");
  const Value top = body.at("top_logprobs");
  if (body.at("logprobs").flag_or(false)) {
    request.logprobs = top ? int(top.whole(0, kMaxLogprobs)) : 0;
  } else if (top) {
    top.refuse("needs 'logprobs' to be true");
  }
}

void read_responses(const Value& body, const BodyLimits&, CompletionRequest& request) {
  ordered_json messages = ordered_json::array();
  const Releaser end{messages};
  if (const Value system = body.at("instructions")) {
    messages.push_back({{"role", "system"}, {"content", system.text()}});
  }
  const Value input = body.at("input");
  if (input.json().is_string()) {
    messages.push_back({{"role", "user"}, {"content", input.text()}});
  } else if (!input.json().is_array() || input.json().empty()) {
    input.refuse_type("a string or a list of items");
  } else {
    for (const Value& item : input.entries(kMaxMessages, "items")) add_item(item, messages);
  }
  if (messages.empty()) input.refuse("has no message");
  request.conversation.messages = messages.dump();
  read_tools(body, ToolForm::flat, request);
  if (const Value text = body.at("text")) {
    const Value verbosity = text.object().at("verbosity"), format = text.at("format");
    verbosity.refuse_if(verbosity && verbosity.json() != "medium" && verbosity.json() != "",
                        "is not supported: answers are as long as the model makes them",
                        "unsupported_parameter");
    if (format) read_response_format(format, false, request);
  }
  const Value reasoning = body.at("reasoning");
  if (reasoning) reasoning.object();
  static const ordered_json none;
  read_variables({none, {}}, reasoning.at("effort"), request.conversation);
}

void read_ollama(const Value& body, const BodyLimits& limits, CompletionRequest& request) {
  request.length = kMaxTokens;
  read_options(body.at("options"), limits.context, request);
  read_format(body.at("format"), request);
  const Value content = body.at(request.chat ? "messages" : "prompt");
  request.load_only = content.json().empty() || content.json() == "";
  if (request.load_only) return;
  if (request.chat) {
    read_messages(content, request);
    read_tools(body, ToolForm::nested, request);
  } else {
    read_generate(body, limits.has_template, request);
  }
  if (request.chat) read_think(body.at("think"), request.conversation);
}

void read_anthropic(const Value& body, const BodyLimits&, CompletionRequest& request) {
  refuse_if(request.route == Route::messages && !request.length, "max_tokens",
            "is missing: give the longest answer in tokens");
  engine::ChatInputs& chat = request.conversation;
  const Value messages = body.at("messages"), config = body.at("output_config");
  if (!messages.json().is_array() || messages.json().empty()) {
    messages.refuse_type("a list of messages");
  }
  Turns turns;
  add_system(body.at("system"), turns, request.ignored);
  for (const Value& message : messages.entries(kMaxMessages, "messages")) add_turn(message, turns);
  if (turns.messages.empty()) messages.refuse("has nothing that can be read");
  // A last message of the assistant is the beginning of the answer.
  chat.continue_final = is_assistant(turns.messages);
  chat.add_generation_prompt = !chat.continue_final;
  messages.refuse_if(chat.continue_final && turns.messages.back().contains("tool_calls"),
                     "ends with a tool_use: give its tool_result");
  chat.messages = turns.messages.dump();
  read_tools(body, ToolForm::anthropic, request);
  read_thinking(body.at("thinking"), request);
  if (config) config.object();
  if (const Value format = config.at("format")) read_response_format(format, false, request);
  static const ordered_json none;
  read_variables({none, {}}, config.at("effort"), chat);
}

}  // namespace mrrope::serve
