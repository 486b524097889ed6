// SPDX-License-Identifier: Apache-2.0
// What surrounds a task's own text: BOS, the model's chat template, the beginning of the answer.
// Each can be switched off and is part of the run's identity.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/tokenizer.h"

namespace mrrope::eval {

struct FrameOptions {
  std::string chat = "auto";  // on, off, auto: if the model has a template
  bool prefix = true;
  bool bos = true;
};

class PromptFrame {
 public:
  // Throws Error: unsupported (chat = on and the model has no template), usage (an unknown word).
  PromptFrame(const Tokenizer& model, const FrameOptions& options);

  // The whole prompt. With a chat template the prefix follows the assistant's header.
  std::string text(const std::string& body, const std::string& prefix) const;

  // Its tokens, with exactly one BOS if the model has one and it is switched on. Control tokens are
  // read as such if a chat template wrote them.
  std::vector<Token> tokens(const std::string& text) const;

  // The same, from the tokens of the text.
  std::vector<Token> with_bos(std::vector<Token> tokens) const;

  // For texts that include a template.
  std::vector<Token> tokens_with_controls(const std::string& text) const;

  bool chat() const noexcept { return chat_; }
  nlohmann::ordered_json identity() const;

 private:
  std::vector<Token> tokens(const std::string& text, bool special) const;

  const Tokenizer& model_;
  FrameOptions options_;
  bool chat_ = false;
  std::string before_;
  std::string after_;
};

}  // namespace mrrope::eval
