// SPDX-License-Identifier: Apache-2.0
// What answers say, piece by piece, as templates of the kind that people use write them.

#include "serve/api/service.h"
#include "support/test.h"

namespace mrrope::serve {
namespace {

using engine::ChatInputs;
using engine::ChatPrompt;
using engine::ChatRenderer;

constexpr std::chrono::milliseconds kLimit{60000};

// Tools, calls and thoughts in the tags that Qwen's models use.
std::string tool_template() {
  std::string text = test::read_file(MRROPE_GOLDEN_DIR "/tool_calls.jinja");
  text.pop_back();  // the end of the last line
  return text;
}

constexpr const char* kTools =
    R"([{"type": "function", "function": {"name": "weather", "description": "d", "parameters":
        {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}])";

const ChatTemplate kChat{tool_template(), "", "<|im_end|>", false};

ChatInputs inputs() {
  ChatInputs in;
  in.messages = R"([{"role": "user", "content": "How is Rome?"}])";
  in.tools = kTools;
  return in;
}

// All deltas of a text that comes in pieces of `size` bytes, joined.
struct Joined {
  std::string content, reasoning;
  std::vector<engine::ToolCall> calls;
  int deltas = 0;
};

Joined read(ChatRenderer& renderer, const AnswerSyntax& syntax, const std::string& text,
            std::size_t size) {
  AnswerReader reader(renderer, syntax, 7);
  Joined all;
  for (std::size_t at = 0; at <= text.size(); at += size) {
    const bool last = at + size > text.size();
    const Delta delta = reader.add(text.substr(at, size), last);
    all.deltas += delta.empty() ? 0 : 1;
    all.content += delta.content;
    all.reasoning += delta.reasoning;
    for (const auto& [index, call] : delta.calls) {
      if (index == all.calls.size()) {
        all.calls.push_back(call);
        EXPECT_FALSE(call.id.empty() || call.name.empty());
      } else {
        EXPECT_TRUE(call.id.empty() && call.name.empty());
        all.calls.at(index).arguments += call.arguments;
      }
    }
  }
  return all;
}

// Reasoning in the tags that templates of models that think have.
constexpr const char* kThinking =
    "{% for m in messages %}<{{ m.role }}>"
    "{% if m.role == 'assistant' and m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n"
    "</think>\n\n{% endif %}{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% if enable_thinking is defined and "
    "enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}";

// What is asked for, by the words of a transcript.
struct Asked {
  explicit Asked(const std::string& words) {
    const auto said = [&](const char* word) { return contains(words, word); };
    if (said("thinking")) chat = {kThinking, "", "</s>", false};
    if (said("bare")) {
      chat = {"{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}", "", "</s>",
              false};
    }
    if (said("no-tools") || said("thinking")) in.tools.clear();
    if (said("required")) in.tool_choice = "required";
    if (said("parallel")) in.parallel_tool_calls = true;
    if (said("one-call")) in.parallel_tool_calls = false;
    if (said("unsplit")) in.split_reasoning = false;
    if (said("thoughtless")) in.variables = R"({"enable_thinking": false})", in.thinking = false;
    if (said("continue")) {
      in.messages = R"([{"role": "user", "content": "Tell."},
                        {"role": "assistant", "content": "Once upon"}])";
      in.continue_final = true;
      in.add_generation_prompt = false;
    }
    if (said("named")) names = {"weather"};
    if (said("echo")) echo = "Echo: ";
    continued = said("continue");
    parallel = !said("one-call");
  }
  ChatTemplate chat = kChat;
  ChatInputs in = inputs();
  std::vector<std::string> names;
  std::string echo;
  bool continued = false, parallel = true;
};

// The end of the prompt and the first rule of the grammar.
std::string prepared(ChatRenderer& renderer, const Asked& a) {
  const ChatPrompt prompt = renderer.prepare(a.chat, a.in, kLimit);
  const std::size_t root = prompt.grammar.find("root ::=");
  return prompt.prompt.substr(prompt.prompt.size() -
                              std::min<std::size_t>(70, prompt.prompt.size())) +
         (prompt.lazy ? "\n  lazy, words " + std::to_string(prompt.trigger_words.size()) : "") +
         (prompt.syntax.empty() ? "" : "\n  with a syntax") +
         (prompt.begun.empty() ? "" : "\n  begun " + prompt.begun) +
         (prompt.grammar.empty()
              ? ""
              : "\n  " + prompt.grammar.substr(root, prompt.grammar.find('\n', root) - root));
}

// The same in pieces of 3 and 5 bytes and in one.
std::string read_answer(ChatRenderer& renderer, const Asked& a, const std::string& text) {
  AnswerSyntax syntax{renderer.prepare(a.chat, a.in, kLimit).syntax, a.continued, a.names, a.echo};
  syntax.parallel = a.parallel;
  std::string said;
  int deltas = 0;  // in the smallest pieces
  for (const std::size_t size : {std::size_t{3}, std::size_t{5}, text.size() + 1}) {
    const Joined all = read(renderer, syntax, text, size);
    std::string now = "content: " + all.content;
    if (!all.reasoning.empty()) now += "\nreasoning: " + all.reasoning;
    std::set<std::string> ids;
    for (const engine::ToolCall& call : all.calls) {
      now += "\ncall: " + call.name + " " + call.arguments;
      EXPECT_TRUE(ids.insert(call.id).second) << text;
    }
    EXPECT_TRUE(said.empty() || said == now) << text << "\n" << said << "\n" << now;
    said = now;
    deltas = size == 3 ? all.deltas : deltas;
  }
  return said + "\n(" + std::to_string(deltas) + " deltas)";
}

TEST(AnswerReader, ReadsAnswersInPieces) {
  ChatRenderer renderer;
  test::expect_functions(
      "answers", {{"prompt", [&](auto& a) { return prepared(renderer, Asked(a[0])); }},
                  {"read", [&](auto& a) { return read_answer(renderer, Asked(a[0]), a[1]); }}});
}

// The templates of models that people use, as llama.cpp collects them: a schema and a required call
// are enforced by every one, or refused.
TEST(AnswerReader, NoTemplateForgetsASchemaOrARequiredCall) {
  ChatRenderer renderer;
  int count = 0, with_tools = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MRROPE_CHAT_TEMPLATES)) {
    if (entry.path().extension() != ".jinja") continue;
    ++count;
    const std::string name = entry.path().filename().string();
    const ChatTemplate chat{test::read_file(entry.path()), "<s>", "</s>", false};
    ChatInputs in = inputs();
    in.tools.clear();
    EXPECT_TRUE(renderer.prepare(chat, in, kLimit).grammar.empty()) << name;
    in.schema = R"({"type": "object", "properties": {"a": {"type": "integer"}}})";
    const ChatPrompt schema = renderer.prepare(chat, in, kLimit);
    EXPECT_FALSE(schema.grammar.empty() || schema.lazy) << name;
    in = inputs();
    in.tool_choice = "required";
    try {
      const ChatPrompt call = renderer.prepare(chat, in, kLimit);
      EXPECT_FALSE(call.grammar.empty() || call.lazy) << name;
      ++with_tools;
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), "no place for tools")) << name << ": " << error.what();
    }
  }
  EXPECT_GT(count, 50);
  EXPECT_GT(with_tools, 45);
}

}  // namespace
}  // namespace mrrope::serve
