// SPDX-License-Identifier: Apache-2.0
#include <chat.h>
#include <json-schema-to-grammar.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "engine/chat/chat.h"
#include "engine/chat/grammar.h"

namespace mrrope::engine {

namespace {

using nlohmann::ordered_json;
using Strings = std::vector<std::string>;

constexpr std::size_t kMaxGrammarBytes = std::size_t{4} << 20;  // bytes

common_chat_templates_ptr template_of(const Strings& request) {
  return common_chat_templates_init(nullptr, request.at(1), request.at(2), request.at(3));
}

// The tokenizer adds BOS itself.
std::string without_bos(const Strings& request, std::string prompt) {
  const std::string& bos = request.at(2);
  if (request.at(4) == "1" && !bos.empty() && prompt.rfind(bos, 0) == 0) {
    prompt.erase(0, bos.size());
  }
  return prompt;
}

std::string render(const Strings& request) {
  const common_chat_templates_ptr templates = template_of(request);
  common_chat_templates_inputs inputs;
  for (std::size_t i = 5; i + 1 < request.size(); i += 2) {
    common_chat_msg m;
    m.role = request[i];
    m.content = request[i + 1];
    inputs.messages.push_back(std::move(m));
  }
  return without_bos(request, common_chat_templates_apply(templates.get(), inputs).prompt);
}

common_chat_templates_inputs inputs_of(const nlohmann::json& request, bool default_parallel) {
  const auto from = request.get<ChatInputs>();
  common_chat_templates_inputs inputs;
  inputs.messages = common_chat_msgs_parse_oaicompat(common_json::parse(from.messages));
  if (!from.tools.empty()) {
    inputs.tools = common_chat_tools_parse_oaicompat(common_json::parse(from.tools));
  }
  inputs.tool_choice = common_chat_tool_choice_parse_oaicompat(from.tool_choice);
  inputs.parallel_tool_calls = request.value("parallel", default_parallel);
  inputs.json_schema = from.schema;
  inputs.add_generation_prompt = from.add_generation_prompt;
  if (from.continue_final) inputs.continue_final_message = COMMON_CHAT_CONTINUATION_AUTO;
  inputs.enable_thinking = from.thinking;
  if (from.split_reasoning) inputs.reasoning_format = COMMON_REASONING_FORMAT_AUTO;
  if (from.variables.empty()) return inputs;
  const ordered_json variables = ordered_json::parse(from.variables);
  for (const auto& [name, value] : variables.items()) {
    inputs.chat_template_kwargs[name] = value.dump();
  }
  return inputs;
}

common_chat_parser_params syntax_of(const ordered_json& from) {
  common_chat_parser_params syntax;
  syntax.format = static_cast<common_chat_format>(from.at("format").get<int>());
  syntax.generation_prompt = from.at("generation_prompt").get<std::string>();
  syntax.parse_tool_calls = from.at("tools").get<bool>();
  syntax.reasoning_format = from.at("reasoning").get<bool>() ? COMMON_REASONING_FORMAT_AUTO
                                                             : COMMON_REASONING_FORMAT_NONE;
  const auto parser = from.at("parser").get<std::string>();
  if (!parser.empty()) syntax.parser.load(parser);
  return syntax;
}

bool thinks(const common_chat_params& chat) {
  return chat.supports_thinking || !chat.thinking_start_tag.empty() ||
         !chat.thinking_end_tags.empty();
}

// Whether the answer is plain text: then it need not be parsed piece by piece.
bool is_plain_text(const common_chat_params& chat, const ordered_json& syntax) {
  if (thinks(chat)) return false;
  const std::string text = " One queue.\n\n - and another \n";
  try {
    return common_chat_parse(text, false, syntax_of(syntax)).content == text;
  } catch (const std::exception&) {
    return false;
  }
}

void check_tools(const common_chat_templates_inputs& inputs, const common_chat_params& chat,
                 std::map<std::string, bool>& caps) {
  if (!chat.grammar.empty()) return;
  if (!caps["supports_tool_calls"]) {
    throw std::runtime_error("the template has no place for tools");
  }
  if (inputs.tool_choice == COMMON_CHAT_TOOL_CHOICE_REQUIRED) {
    throw std::runtime_error(
        "the form of tool calls cannot be told from the template, so none can "
        "be required");
  }
}

// The definition of a rule within a grammar; empty: it has none. llama.cpp writes one rule per
// line.
std::string_view rule_of(std::string_view gbnf, const std::string& rule) {
  const std::string head = rule + " ::= ";
  const bool first = gbnf.starts_with(head);
  const std::size_t at = first ? 0 : gbnf.find("\n" + head);
  if (at == std::string_view::npos) return {};
  gbnf.remove_prefix(at + head.size() + (first ? 0 : 1));
  return gbnf.substr(0, gbnf.find('\n'));
}

// The rules that the root of a lazy grammar chooses from: those that begin with a trigger.
Strings calls_of(const std::string& gbnf) {
  Strings names;
  std::istringstream words{std::string(rule_of(gbnf, "root"))};
  for (std::string word; words >> word;) {
    if (word == "|") continue;
    if (rule_of(gbnf, word).empty()) return {};  // more than a choice
    names.push_back(word);
  }
  return names;
}

// The grammar of an answer that is a call, or calls, and nothing else. Unchanged if it has no such
// rules.
std::string only_calls(std::string gbnf, const Strings& calls, bool parallel) {
  std::string choice;
  const bool one = !parallel && std::count(calls.begin(), calls.end(), "tool-call") == 1;
  for (const std::string& name : calls) {
    // llama.cpp's rule for several calls, which it also has where only one is allowed.
    if (rule_of(gbnf, name).empty() || (one && name == "tool-calls")) continue;
    choice += choice.empty() ? name : " | " + name;
  }
  const std::string_view root = rule_of(gbnf, "root");
  if (choice.empty() || root.empty()) return gbnf;
  return gbnf.replace(std::size_t(root.data() - gbnf.data()), root.size(), choice);
}

// A call that is required has to come at once: llama.cpp's grammar for it allows any text before
// the call, and small models then never get to it. Models that think first keep that grammar. True
// if it was changed.
bool narrow_to_calls(const common_chat_templates* templates, common_chat_templates_inputs inputs,
                     common_chat_params& chat) {
  const bool parallel = inputs.parallel_tool_calls;
  if (inputs.tool_choice != COMMON_CHAT_TOOL_CHOICE_REQUIRED) {
    if (chat.grammar_lazy)
      chat.grammar = only_calls(chat.grammar, calls_of(chat.grammar), parallel);
    return false;
  }
  if (thinks(chat) || chat.grammar_lazy) return false;
  inputs.tool_choice = COMMON_CHAT_TOOL_CHOICE_AUTO;
  const common_chat_params optional = common_chat_templates_apply(templates, inputs);
  if (!optional.grammar_lazy) return false;
  const std::string before = chat.grammar;
  chat.grammar = only_calls(before, calls_of(optional.grammar), parallel);
  return chat.grammar != before;
}

void check_size_and_gbnf(const char* what, const std::string& grammar) {
  if (grammar.size() > kMaxGrammarBytes) {
    throw std::runtime_error(
        cat(what, " has ", grammar.size(), " bytes, at most ", kMaxGrammarBytes, " are allowed"));
  }
  check_gbnf(grammar);
}

std::string prepare(const Strings& request) {
  const common_chat_templates_ptr templates = template_of(request);
  auto caps = common_chat_templates_get_caps(templates.get());
  const auto inputs =
      inputs_of(nlohmann::json::parse(request.at(5)), caps["supports_parallel_tool_calls"]);
  common_chat_params chat = common_chat_templates_apply(templates.get(), inputs);
  const bool tools = !inputs.tools.empty() && inputs.tool_choice != COMMON_CHAT_TOOL_CHOICE_NONE;
  bool begins_with_call = false;
  if (tools) {
    check_tools(inputs, chat, caps);
    begins_with_call = narrow_to_calls(templates.get(), inputs, chat);
  }
  // llama.cpp's parsers of some templates have no place for a schema.
  const bool bare = !inputs.json_schema.empty() && chat.grammar.empty();
  if (bare) chat.grammar = json_schema_to_grammar(common_json::parse(inputs.json_schema));
  if (!chat.grammar.empty()) check_size_and_gbnf("the grammar of tools or schema", chat.grammar);
  const ordered_json syntax = {
      {"format", int(chat.format)},
      {"generation_prompt", chat.generation_prompt},
      {"tools", tools},
      {"reasoning", inputs.reasoning_format != COMMON_REASONING_FORMAT_NONE},
      {"parser", chat.parser}};
  const bool plain = bare || (!tools && inputs.json_schema.empty() && is_plain_text(chat, syntax));
  ChatPrompt made;
  made.prompt = without_bos(request, chat.prompt);
  made.grammar = chat.grammar;
  made.lazy = chat.grammar_lazy;
  for (const common_grammar_trigger& trigger : chat.grammar_triggers) {
    if (trigger.type == COMMON_GRAMMAR_TRIGGER_TYPE_WORD) {
      made.trigger_words.emplace_back(trigger.value, regex_escape(trigger.value));
    } else if (trigger.type == COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN) {
      made.trigger_patterns.push_back(trigger.value);
    } else if (trigger.type == COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL) {
      made.trigger_patterns.push_back("^(?:" + trigger.value + ")$");
    } else {
      throw std::runtime_error("a trigger of the grammar is of an unknown kind");
    }
  }
  if (!begins_with_call && !bare) made.begun = chat.generation_prompt;
  made.shown = chat.preserved_tokens;
  made.stops = chat.additional_stops;
  if (!plain) made.syntax = syntax.dump();
  return json_text(nlohmann::json(made));
}

std::string parse(const Strings& request) {
  const auto syntax = syntax_of(ordered_json::parse(request.at(1)));
  const common_chat_msg said = common_chat_parse(request.at(3), request.at(2) == "partial", syntax);
  ParsedAnswer answer{said.render_content(), said.reasoning_content, {}};
  for (const common_chat_tool_call& call : said.tool_calls) {
    answer.calls.push_back({call.id, call.name, call.arguments});
  }
  return json_text(nlohmann::json(answer));
}

std::string schema(const Strings& request) {
  std::string grammar = json_schema_to_grammar(common_json::parse(request.at(1)));
  check_size_and_gbnf("its grammar", grammar);
  return grammar;
}

}  // namespace

std::string do_chat_work(const Strings& request) {
  const std::string& kind = request.at(0);
  if (kind == "render") return render(request);
  if (kind == "prepare") return prepare(request);
  if (kind == "parse") return parse(request);
  if (kind == "schema") return schema(request);
  if (kind != "grammar") throw std::runtime_error("not a request");
  check_gbnf(request.at(1));
  return {};
}

}  // namespace mrrope::engine
