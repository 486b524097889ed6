// SPDX-License-Identifier: Apache-2.0
// Text to tokens and back, with the tokenizer and the chat template of a model file. `file` is its
// name, for messages. All throw Error: unsupported, failed; tokens_of() also usage (a line that is
// too long).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/llama/llama_api.h"
#include "model/timeline_model.h"

namespace mrrope::engine {

std::vector<Token> tokens_of(const llama_vocab* vocab, const std::string& file,
                             std::string_view text, bool special);  // without BOS
// Throws Error (usage) for a text that would take the tokenizer too long: with two of libllama's
// the time grows with the square of a run of digits, or of blanks.
void check_runs(const llama_model* model, const std::string& file, std::string_view text);
std::string text_of(const llama_vocab* vocab, const std::string& file,
                    std::span<const Token> tokens);
// The bytes of one token; special: also of a control token.
std::string piece_of(const llama_vocab* vocab, Token token, bool special);
std::optional<Token> bos_of(const llama_vocab* vocab);  // if the file asks for one
std::optional<ChatTemplate> chat_template_of(const llama_model* model);
std::string chat_prompt(const llama_model* model, const std::string& file,
                        std::span<const ChatMessage> messages);

}  // namespace mrrope::engine
