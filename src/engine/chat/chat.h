// SPDX-License-Identifier: Apache-2.0
// Chats by a model's own template: the prompt that it makes of messages and tools, the grammar of
// the answer, and what the answer says. Templates, schemas and grammars are untrusted, so none of
// this happens in this process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/timeline_model.h"
#include "mrrope/error.h"

namespace mrrope::engine {

// What a template is given. The texts are JSON; empty: none.
struct ChatInputs {
  std::string messages;              // a list, as in OpenAI's API
  std::string tools;                 // a list of functions
  std::string tool_choice = "auto";  // or none, required
  std::optional<bool> parallel_tool_calls;
  std::string schema;     // of the answer
  std::string variables;  // an object
  bool add_generation_prompt = true;
  bool continue_final = false;  // the last message is the beginning of the answer
  bool thinking = true;         // where the template has a switch for it
  bool split_reasoning = true;  // parse() tells it from the content
};

struct ChatPrompt {
  std::string prompt;
  std::string grammar;  // of the answer, in GBNF; empty: none
  bool lazy = false;    // it applies after one of the triggers
  std::vector<std::pair<std::string, std::string>> trigger_words;  // each also as a pattern
  std::vector<std::string> trigger_patterns;
  // The end of the prompt, which the grammar describes too.
  std::string begun;
  std::vector<std::string> shown;  // control tokens that parse() needs to see
  std::vector<std::string> stops;
  std::string syntax;  // for parse(); empty: the answer says what its text is
};

struct ToolCall {
  std::string id;  // may be empty
  std::string name;
  std::string arguments;  // JSON, perhaps its beginning

  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

struct ParsedAnswer {
  std::string content;
  std::string reasoning;
  std::vector<ToolCall> calls;
};

// Too many requests are waiting. Nothing is wrong with this one.
class ChatBusy : public Error {
 public:
  using Error::Error;
};

// Works in child processes, which are killed when they take too long or too much memory.
class ChatRenderer {
 public:
  // Forks. Make it while this process is small and has one thread.
  ChatRenderer();
  ChatRenderer(const ChatRenderer&) = delete;
  ChatRenderer& operator=(const ChatRenderer&) = delete;

  // From any thread; a few work at a time, and the rest wait. All throw Error: failed,
  // out_of_memory (no process can be started), interrupted (see GiveUp); ChatBusy.
  using Limit = std::chrono::milliseconds;
  // Called a few times per second while the request waits. It may throw; true gives up.
  using GiveUp = std::function<bool()>;

  std::string render(const ChatTemplate& chat, std::span<const ChatMessage> messages, Limit limit);
  ChatPrompt prepare(const ChatTemplate& chat, const ChatInputs& inputs, Limit limit,
                     const GiveUp& give_up = {});
  // What an answer says, or its beginning. Waits for other answers only.
  ParsedAnswer parse(const std::string& syntax, const std::string& text, bool partial, Limit limit,
                     const GiveUp& give_up = {});

  // Throws unless the grammar can be read and followed in reasonable time.
  void check_grammar(const std::string& grammar, Limit limit, const GiveUp& give_up = {});
  // The grammar of a JSON schema, checked.
  std::string schema_grammar(const std::string& schema, Limit limit, const GiveUp& give_up = {});

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The renderer of this process. start_llama() makes it before it initialises any device.
ChatRenderer& chat_renderer();

// ---- What the worker of a ChatRenderer does, and how its replies are read.

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChatInputs, messages, tools, tool_choice, schema, variables,
                                   add_generation_prompt, continue_final, thinking, split_reasoning)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChatPrompt, prompt, grammar, lazy, trigger_words,
                                   trigger_patterns, begun, shown, stops, syntax)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ToolCall, id, name, arguments)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ParsedAnswer, content, reasoning, calls)

// For workers only. A request is its kind and what that needs. Throws std::exception.
//   render: source, bos, eos, whether to remove BOS; then role and content by turns -> the prompt
//   prepare: source, bos, eos, whether to remove BOS; ChatInputs as JSON, with `parallel`
//     if that is given -> ChatPrompt as JSON
//   parse: syntax, "partial" or "whole", text -> ParsedAnswer as JSON
//   grammar: GBNF -> nothing
//   schema: JSON schema -> GBNF
std::string do_chat_work(const std::vector<std::string>& request);

// A worker has run an untrusted program, so its reply need not be JSON: throws Error (failed).
template <typename Result>
Result read_reply(const std::string& reply) {
  try {
    return nlohmann::json::parse(reply).get<Result>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::failed,
                std::string("the worker's reply cannot be read: ") + error.what());
  }
}

}  // namespace mrrope::engine
