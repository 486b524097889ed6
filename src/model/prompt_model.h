// SPDX-License-Identifier: Apache-2.0
// Text to tokens and back, as one model does it; what to generate, and what was generated; and a
// model that only answers whole prompts: one behind an endpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

  // add_bos: prepend the model's BOS if it has one and its file asks for it.
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

  // The prompt that the model's own chat template makes, up to the assistant's answer. Tokenize it
  // with add_bos and special. Throws Error (unsupported) if the model has no usable template.
  virtual std::string apply_chat_template(std::span<const ChatMessage> messages) const = 0;

  // Whether tokenize() sends a request to another machine: then one long text is better than many
  // short ones.
  virtual bool tokenizer_is_remote() const = 0;
};

// What an answer has to match, in llama.cpp's GBNF with a rule named root. A lazy one allows every
// token until a trigger is written: one of the tokens, or text that one of the patterns (regular
// expressions of ECMAScript) matches; the answer matches from the first group of that on.
struct Grammar {
  std::string text;  // empty: none
  bool lazy = false;
  std::vector<std::string> patterns;
  std::vector<Token> tokens;
  // The end of the prompt, where the grammar describes that too.
  std::vector<Token> begun;
};

// temperature 0 is greedy, and the default: evaluations must repeat.
struct Sampling {
  double temperature = 0;
  int top_k = 40;
  double top_p = 0.95;
  double min_p = 0.05;
  std::uint32_t seed = 1;
  double typical_p = 1;  // 1: off
  // Of the last repeat_last_n tokens, those of the prompt included.
  double repeat_penalty = 1;
  double frequency_penalty = 0;
  double presence_penalty = 0;
  int repeat_last_n = 64;
  std::vector<std::pair<Token, float>> bias = {};  // added to logits; minus infinity bans a token
  bool ignore_end = false;                         // tokens that end the text are banned
  Grammar grammar = {};
};

struct GenerateOptions {
  int max_tokens = 128;
  Sampling sampling;
  std::vector<std::string> stop;  // generation ends before the first of these
  // Called with each new piece of text (whole UTF-8 characters); false stops the generation. It
  // must not use the model.
  std::function<bool(std::string_view)> on_text;
};

struct Generation {
  std::string text;
  std::vector<Token> tokens;
  std::string finish;       // "stop" (end of text or a stop string), "length", "cancelled"
  double smallest_gap = 0;  // least difference of the top two logits over all greedy steps
};

struct WholePrompt {
  std::vector<Token> tokens;
  std::string text;  // the same as text; may be empty
};

struct WholeAnswer {
  Generation said;
  // Not empty: why this prompt got no answer. Others may succeed.
  std::string failed;
  // How often each kind of failure occurred on the way: "status 429", "cut", "usage", ...
  std::map<std::string, int> troubles;
};

class PromptModel : public Tokenizer {
 public:
  virtual std::string name() const = 0;         // as the server names it
  virtual std::string description() const = 0;  // for run.json: server, protocol, tokenizer
  // Tokens of one request, answer included.
  virtual std::int64_t context_length() const = 0;
  // Tokens the model was trained on; the context if that is not known.
  virtual std::int64_t train_length() const = 0;

  // The most prompts to ask at the same time.
  virtual int parallel() const = 0;
  // From any thread. A wait ends early if options.on_text, called with an empty text, returns
  // false. Throws Error if every other prompt would fail too.
  virtual WholeAnswer ask(const WholePrompt& prompt, const GenerateOptions& options) = 0;
  // From any thread: ends every ask() in progress, and every later one at once.
  virtual void cancel() = 0;
};

}  // namespace mrrope
