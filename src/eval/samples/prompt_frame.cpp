// SPDX-License-Identifier: Apache-2.0
#include "eval/samples/prompt_frame.h"

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::eval {

namespace {

// Where the task's words go while a chat template is at work.
constexpr std::string_view kMark = "[[mrrope-body]]";

}  // namespace

PromptFrame::PromptFrame(const Tokenizer& model, const FrameOptions& options)
    : model_(model), options_(options) {
  if (options.chat != "on" && options.chat != "off" && options.chat != "auto") {
    throw Error(ErrorKind::usage, cat("--chat ", options.chat), "give on, off or auto");
  }
  if (options.chat == "off") return;
  const ChatMessage message{"user", std::string(kMark)};
  std::string prompt;
  try {
    prompt = model.apply_chat_template({&message, 1});
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::unsupported || options.chat == "on") throw;
    return;
  }
  const std::size_t at = prompt.find(kMark);
  if (at == std::string::npos) {
    throw Error(ErrorKind::unsupported, "the chat template drops the user's text",
                "give --chat off");
  }
  chat_ = true;
  before_ = prompt.substr(0, at);
  after_ = prompt.substr(at + kMark.size());
}

std::string PromptFrame::text(const std::string& body, const std::string& prefix) const {
  std::string whole;
  whole.reserve(before_.size() + body.size() + after_.size() + prefix.size());
  whole.append(before_).append(body).append(after_);
  if (options_.prefix) whole += prefix;
  return whole;
}

std::vector<Token> PromptFrame::tokens(const std::string& text) const {
  return tokens(text, chat_);
}

std::vector<Token> PromptFrame::tokens_with_controls(const std::string& text) const {
  return tokens(text, true);
}

std::vector<Token> PromptFrame::tokens(const std::string& text, bool special) const {
  return with_bos(model_.tokenize(text, false, special));
}

std::vector<Token> PromptFrame::with_bos(std::vector<Token> tokens) const {
  const std::optional<Token> bos = model_.bos();
  if (bos && options_.bos) tokens.insert(tokens.begin(), *bos);
  // A template may spell a BOS of its own.
  while (bos && tokens.size() > 1 && tokens[0] == *bos && tokens[1] == *bos) {
    tokens.erase(tokens.begin());
  }
  return tokens;
}

nlohmann::ordered_json PromptFrame::identity() const {
  return {{"chat", chat_},
          {"chat_before", before_},
          {"chat_after", after_},
          {"answer_prefix", options_.prefix},
          {"bos", options_.bos && model_.bos().has_value()}};
}

}  // namespace mrrope::eval
