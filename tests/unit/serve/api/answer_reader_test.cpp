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
  std::ifstream in(std::string(MRROPE_GOLDEN_DIR) + "/tool_calls.jinja");
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
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

TEST(AnswerReader, PassesPlainTextOn) {
  ChatRenderer renderer;
  ChatInputs in = inputs();
  in.tools.clear();
  const ChatPrompt prompt = renderer.prepare(kChat, in, kLimit);
  EXPECT_EQ(prompt.prompt, "<|im_start|>user\nHow is Rome?<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_TRUE(prompt.syntax.empty() && prompt.grammar.empty());
  const Joined all = read(renderer, {{}, false, {}, "Echo: "}, "Rome is fine.", 4);
  EXPECT_EQ(all.content, "Echo: Rome is fine.");
  EXPECT_EQ(all.deltas, 4);
}

TEST(AnswerReader, FindsToolCallsInPieces) {
  ChatRenderer renderer;
  const ChatPrompt prompt = renderer.prepare(kChat, inputs(), kLimit);
  EXPECT_TRUE(contains(prompt.prompt, "weather"));
  EXPECT_TRUE(prompt.lazy);
  EXPECT_EQ(prompt.trigger_words.size(), 1U);
  EXPECT_FALSE(prompt.syntax.empty());
  const std::string text =
      "Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n"
      "</tool_call>";
  for (const std::size_t size : {std::size_t{5}, text.size() + 1}) {
    const Joined all = read(renderer, {prompt.syntax, false}, text, size);
    EXPECT_EQ(all.content.substr(0, 11), "Let me see.") << size;
    EXPECT_FALSE(contains(all.content, "tool_call"));
    ASSERT_EQ(all.calls.size(), 1U) << size;
    EXPECT_EQ(all.calls[0].name, "weather");
    EXPECT_EQ(all.calls[0].arguments, "{\"city\": \"Rome\"}") << size;
    if (size == 5) {
      EXPECT_GT(all.deltas, 4);
    }
  }
}

TEST(AnswerReader, FindsSeveralCalls) {
  ChatRenderer renderer;
  ChatInputs in = inputs();
  in.parallel_tool_calls = true;
  const ChatPrompt prompt = renderer.prepare(kChat, in, kLimit);
  const auto call = [](const std::string& city) {
    return "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"" + city +
           "\"}}\n</tool_call>";
  };
  const Joined all = read(renderer, {prompt.syntax, false}, call("Rome") + "\n" + call("Oslo"), 9);
  ASSERT_EQ(all.calls.size(), 2U);
  EXPECT_EQ(all.calls[1].arguments, "{\"city\": \"Oslo\"}");
  EXPECT_NE(all.calls[0].id, all.calls[1].id);
}

// An answer may end anywhere, and may be nothing that the template would write.
TEST(AnswerReader, ReadsWhatItCan) {
  ChatRenderer renderer;
  ChatInputs in = inputs();
  in.tool_choice = "required";
  const ChatPrompt prompt = renderer.prepare(kChat, in, kLimit);
  EXPECT_FALSE(prompt.lazy || prompt.grammar.empty());
  EXPECT_TRUE(prompt.begun.empty());  // the grammar begins with the call
  EXPECT_TRUE(contains(prompt.grammar, "root ::= tool-call | tool-calls\n"));
  EXPECT_FALSE(contains(prompt.grammar, "tool-call?"));
  for (const char* choice : {"required", "auto"}) {
    in.tool_choice = choice;
    in.parallel_tool_calls = false;
    const std::string one = renderer.prepare(kChat, in, kLimit).grammar;
    EXPECT_TRUE(contains(one, "root ::= tool-call\n"));
  }
  const Joined cut = read(renderer, {prompt.syntax, false},
                          "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Ro", 6);
  ASSERT_EQ(cut.calls.size(), 1U);
  EXPECT_EQ(cut.calls[0].arguments.rfind("{\"city\": \"Ro", 0), 0U) << cut.calls[0].arguments;
  const Joined other = read(renderer, {prompt.syntax, false}, "No, thanks.", 20);
  EXPECT_EQ(other.content, "No, thanks.");
}

TEST(AnswerReader, TakesTheBareJsonOfACallForOne) {
  ChatRenderer renderer;
  const AnswerSyntax syntax{renderer.prepare(kChat, inputs(), kLimit).syntax, false, {"weather"}};
  for (const char* text :
       {"```json\n{\n  \"name\": \"weather\",\n  \"arguments\": {\"city\": \"Rome\"}\n}\n```",
        "{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}",
        "{{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}}"}) {
    const Joined all = read(renderer, syntax, text, 5);
    ASSERT_EQ(all.calls.size(), 1U) << text;
    EXPECT_EQ(all.calls[0].arguments, "{\"city\":\"Rome\"}");
    EXPECT_EQ(all.content, "") << text;
  }
  for (const char* text : {"```json\n{\"name\": \"other\", \"arguments\": {}}\n```",
                           "```python\nprint(1)\n```", "{\"name\": \"weather\"}",
                           "{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}} it is."}) {
    const Joined all = read(renderer, syntax, text, 5);
    EXPECT_TRUE(all.calls.empty()) << text;
    EXPECT_EQ(all.content, text);
  }
}

// As Qwen2.5-Coder-1.5B writes them.
TEST(AnswerReader, TakesSeveralBareCallsForSeveral) {
  ChatRenderer renderer;
  AnswerSyntax syntax{renderer.prepare(kChat, inputs(), kLimit).syntax, false, {"weather"}};
  const std::string rome = R"({"name": "weather", "arguments": {"city": "Rome"}})";
  const std::string oslo = R"({"name": "weather", "arguments": {"city": "O}s\"{lo"}})";
  for (const std::string& text : {"```json\n" + rome + "\n" + oslo + "\n```", rome + ", " + oslo,
                                  "{" + rome + "}, " + oslo + "}"}) {
    const Joined all = read(renderer, syntax, text, 5);
    ASSERT_EQ(all.calls.size(), 2U) << text;
    EXPECT_EQ(all.calls[0].arguments, R"({"city":"Rome"})");
    EXPECT_EQ(all.calls[1].arguments, R"({"city":"O}s\"{lo"})");
    EXPECT_NE(all.calls[0].id, all.calls[1].id);
    EXPECT_EQ(all.content, "") << text;
  }
  for (const std::string& text : {rome + " and " + oslo, rome + "\n{\"name\": \"weather\"",
                                  rome + ", {\"name\": \"other\", \"arguments\": {}}"}) {
    const Joined all = read(renderer, syntax, text, 5);
    EXPECT_TRUE(all.calls.empty()) << text;
    EXPECT_EQ(all.content, text);
  }
  syntax.parallel = false;
  EXPECT_EQ(read(renderer, syntax, rome + "\n" + oslo, 5).calls.size(), 1U);
}

TEST(AnswerReader, SplitsReasoning) {
  ChatRenderer renderer;
  const std::string thinking =
      "{% for m in messages %}<{{ m.role }}>"
      "{% if m.role == 'assistant' and m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n"
      "</think>\n\n{% endif %}{{ m.content }}</s>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% if enable_thinking is defined and "
      "enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}";
  const ChatTemplate chat{thinking, "", "</s>", false};
  ChatInputs in = inputs();
  in.tools.clear();
  const ChatPrompt prompt = renderer.prepare(chat, in, kLimit);
  ASSERT_FALSE(prompt.syntax.empty());
  const std::string text = "<think>\nHot there.\n</think>\n\nIt is warm.";
  for (const std::size_t size : {std::size_t{3}, text.size() + 1}) {
    const Joined all = read(renderer, {prompt.syntax, false}, text, size);
    EXPECT_TRUE(contains(all.reasoning, "Hot there.")) << size;
    EXPECT_EQ(all.content, "It is warm.") << size;
  }
  in.split_reasoning = false;
  const ChatPrompt whole = renderer.prepare(chat, in, kLimit);
  EXPECT_EQ(read(renderer, {whole.syntax, false}, text, 100).content, text);
  in.variables = R"({"enable_thinking": false})";
  in.thinking = false;
  EXPECT_TRUE(contains(renderer.prepare(chat, in, kLimit).prompt, "<think>\n\n</think>"));
}

TEST(AnswerReader, ContinuesAMessageWithoutRepeatingIt) {
  ChatRenderer renderer;
  ChatInputs in;
  in.messages = R"([{"role": "user", "content": "Tell."},
                    {"role": "assistant", "content": "Once upon"}])";
  in.continue_final = true;
  in.add_generation_prompt = false;
  const ChatPrompt prompt = renderer.prepare(kChat, in, kLimit);
  EXPECT_EQ(prompt.prompt.substr(prompt.prompt.size() - 9), "Once upon") << prompt.prompt;
  EXPECT_EQ(read(renderer, {prompt.syntax, true}, " a time", 3).content, " a time");
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

TEST(AnswerReader, RefusesToolsThatATemplateDoesNotHave) {
  ChatRenderer renderer;
  const ChatTemplate plain{"{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}",
                           "", "</s>", false};
  const Error error = test::error_of([&] { renderer.prepare(plain, inputs(), kLimit); });
  EXPECT_TRUE(contains(error.what(), "no place for tools"));
}

}  // namespace
}  // namespace mrrope::serve
