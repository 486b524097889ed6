// SPDX-License-Identifier: Apache-2.0
// What the worker of a ChatRenderer does, and how its replies are read.
#pragma once

#include <string>
#include <vector>

#include "engine/chat/chat.h"

namespace mrrope::engine {

// May crash, hang or run out of memory: for workers only. A request is its kind and what that
// needs; the answer is one string. Throws std::exception.
//   render: source, bos, eos, whether to remove BOS; then role and content by turns -> the prompt
//   prepare: source, bos, eos, whether to remove BOS; ChatInputs as JSON -> ChatPrompt as JSON
//   parse: syntax, "partial" or "whole", text -> ParsedAnswer as JSON
//   grammar: GBNF -> nothing
//   schema: JSON schema -> GBNF
std::string do_chat_work(const std::vector<std::string>& request);

// The replies to prepare and parse. A worker has run a stranger's program, so its reply need not be
// what it should: they throw Error (failed).
ChatPrompt read_chat_prompt(const std::string& reply);
ParsedAnswer read_answer(const std::string& reply);

// Throws std::runtime_error with the reason if a grammar cannot be read.
void check_gbnf(const std::string& grammar);

}  // namespace mrrope::engine
