// SPDX-License-Identifier: Apache-2.0
// Prompts are data: a text with placeholders, and the beginning of the answer. The built-in ones
// (data/prompts.json) are written for this project; a file of the same form replaces any of them:
//   {"ruler/vt": {"text": "... {context} ... {value} ...", "prefix": " ..."}, ...}
// A frame is what surrounds them: BOS, the model's chat template, the beginning of the answer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/tokenizer.h"

namespace mrrope::eval {

struct Prompt {
  std::string text;
  std::string prefix;  // the beginning of the answer; --without prefix removes it
};

using Prompts = std::map<std::string, Prompt>;

const Prompts& builtin_prompts();

// The built-in prompts, with those of the file in place of theirs. A replacement may use only the
// placeholders of the built-in prompt, and must use those without which it does not ask anything:
// all but {type}, {count}, {i} and one of {input} and {target}. Throws Error: failed, corrupt.
// sha256: that of the file's bytes, if asked for.
Prompts read_prompts(const std::filesystem::path& path, std::string* sha256 = nullptr);

// For a run's identity: the prompts whose names begin so.
nlohmann::ordered_json prompts_identity(const Prompts& prompts, std::string_view beginning);

using Fill = std::vector<std::pair<std::string_view, std::string_view>>;

// Replaces every {name} in one pass: inserted text is not searched again.
std::string fill(std::string_view text, const Fill& values);

// Each can be switched off and is part of the run's identity.
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
  // read as such if a chat template wrote them, or the text includes a template (`controls`).
  std::vector<Token> tokens(const std::string& text, bool controls = false) const;

  // The same, from the tokens of the text.
  std::vector<Token> with_bos(std::vector<Token> tokens) const;

  const Tokenizer& model() const noexcept { return model_; }
  bool chat() const noexcept { return chat_; }
  nlohmann::ordered_json identity() const;

 private:
  const Tokenizer& model_;
  FrameOptions options_;
  bool chat_ = false;
  std::string before_;
  std::string after_;
};

// Counts the tokens of generated texts quickly. Such texts repeat their words: each is tokenized
// once, with the blank before it, and remembered (whole texts if the tokenizer is remote). If no
// token of the vocabulary crosses the start of a word, which is true for nearly all, the result is
// the tokenization of the whole text; the caller checks this (fitting.h does for every sample set).
class TokenCounter {
 public:
  // special: the text of control tokens is read as those tokens.
  explicit TokenCounter(const Tokenizer& model, bool special = false)
      : model_(model), special_(special) {}

  std::int64_t count(std::string_view text);
  // Without BOS.
  std::vector<Token> tokens(std::string_view text);

 private:
  template <typename Take>
  void each_word(std::string_view text, const Take& take);

  const Tokenizer& model_;
  bool special_;
  std::unordered_map<std::string, std::vector<Token>> known_;
};

}  // namespace mrrope::eval
