// SPDX-License-Identifier: Apache-2.0
// Tokens without a model: for engines that stand elsewhere.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/engine.h"

namespace mrrope {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string name() const = 0;                                          // for run.json
  virtual std::vector<Token> tokenize(std::string_view text, bool special) = 0;  // without BOS
  virtual std::string detokenize(std::span<const Token> tokens) = 0;
  virtual std::optional<Token> bos() = 0;
  virtual std::string apply_chat_template(std::span<const ChatMessage> messages) = 0;
};

// The vocabulary of a GGUF file; its weights are not read. Throws Error: unsupported, failed,
// corrupt.
std::unique_ptr<Tokenizer> open_vocabulary(const std::filesystem::path& file);

}  // namespace mrrope
