// SPDX-License-Identifier: Apache-2.0
// What the worker of a ChatRenderer does. It may crash, hang or run out of memory: call it nowhere
// else.
#pragma once

#include <string>
#include <vector>

namespace mrrope::engine {

// A request is its kind and what that needs; the answer is one string. Throws std::exception.
//   render: source, bos, eos, whether to remove BOS; then role and content by turns -> the prompt
//   prepare: source, bos, eos, whether to remove BOS; ChatInputs as JSON -> ChatPrompt as JSON
//   parse: syntax, "partial" or "whole", text -> ParsedAnswer as JSON
//   grammar: GBNF -> nothing
//   schema: JSON schema -> GBNF
std::string do_chat_work(const std::vector<std::string>& request);

// Throws std::runtime_error with the reason if a grammar cannot be read, or if following it takes
// more and more time with every character.
void check_gbnf(const std::string& grammar);

}  // namespace mrrope::engine
