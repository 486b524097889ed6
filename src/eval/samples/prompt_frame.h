// SPDX-License-Identifier: Apache-2.0
// What stands around a task's own words: BOS, the model's chat template, the beginning of the
// answer. Each is a switch and part of the run's identity.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/tokenizer.h"

namespace mrrope {

struct FrameOptions {
  std::string chat = "auto";  // on, off, auto: where the model has a template
  bool prefix = true;
  bool bos = true;
};

class PromptFrame {
 public:
  // Throws Error (unsupported) for chat = on where the model has no template, usage for an unknown
  // word.
  PromptFrame(const Tokenizer& model, const FrameOptions& options);

  // The whole prompt. With a chat template the prefix stands after the assistant's header.
  std::string text(const std::string& body, const std::string& prefix) const;

  // Its tokens, with exactly one BOS where the model has one and it is switched on. Control tokens
  // are read as such where a chat template wrote them.
  std::vector<Token> tokens(const std::string& text) const;

  // The same from the tokens of the text alone.
  std::vector<Token> with_bos(std::vector<Token> tokens) const;

  // For texts that bring a template along.
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

}  // namespace mrrope
