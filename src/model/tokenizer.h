// SPDX-License-Identifier: Apache-2.0
// Text to tokens and back, as one model does it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mrrope {

using Token = std::int32_t;

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // add_bos: prepend the model's BOS where it has one and its file asks for it.
  // special: read the text of control tokens as those tokens.
  virtual std::vector<Token> tokenize(std::string_view text, bool add_bos, bool special) const = 0;
  // The same, or nullopt if give_up returned true. An engine whose tokenizer takes long calls it
  // now and then; here it is not called.
  virtual std::optional<std::vector<Token>> tokenize_unless(
      std::string_view text, bool add_bos, bool special,
      const std::function<bool()>& give_up) const {
    static_cast<void>(give_up);
    return tokenize(text, add_bos, special);
  }
  virtual std::string detokenize(std::span<const Token> tokens) const = 0;
  virtual std::optional<Token> bos() const = 0;

  // The prompt that the model's own chat template makes, up to where the assistant speaks. It goes
  // through tokenize(add_bos = true, special = true).
  // Throws Error (unsupported) where the model has no template.
  virtual std::string apply_chat_template(std::span<const ChatMessage> messages) const = 0;

  // Whether a call of tokenize() is a message to another machine: better one long text than many
  // words.
  virtual bool tokenizer_is_remote() const = 0;
};

}  // namespace mrrope
