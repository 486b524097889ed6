// SPDX-License-Identifier: Apache-2.0
// What the worker of a ChatRenderer does, and how its replies are read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/chat/chat.h"

namespace mrrope::engine {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChatInputs, messages, tools, tool_choice, schema, variables,
                                   add_generation_prompt, continue_final, thinking, split_reasoning)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ChatPrompt, prompt, grammar, lazy, trigger_words,
                                   trigger_patterns, begun, shown, stops, syntax)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ToolCall, id, name, arguments)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ParsedAnswer, content, reasoning, calls)

// May crash, hang or run out of memory: for workers only. A request is its kind and what that
// needs; the answer is one string. Throws std::exception.
//   render: source, bos, eos, whether to remove BOS; then role and content by turns -> the prompt
//   prepare: source, bos, eos, whether to remove BOS; ChatInputs as JSON, with `parallel`
//     if that is given -> ChatPrompt as JSON
//   parse: syntax, "partial" or "whole", text -> ParsedAnswer as JSON
//   grammar: GBNF -> nothing
//   schema: JSON schema -> GBNF
std::string do_chat_work(const std::vector<std::string>& request);

// The reply to prepare or parse. A worker has run an untrusted program, so its reply need not be
// what it should: throws Error (failed).
template <typename Result>
Result read_reply(const std::string& reply) {
  try {
    return nlohmann::json::parse(reply).get<Result>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::failed,
                std::string("the worker's reply cannot be read: ") + error.what());
  }
}

// Throws std::runtime_error with the reason if a grammar cannot be read.
void check_gbnf(const std::string& grammar);

}  // namespace mrrope::engine
