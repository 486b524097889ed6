// SPDX-License-Identifier: Apache-2.0
// Text to tokens and back, with the tokenizer and the chat template of a model file. `file` is its
// name, for messages. All throw Error: unsupported, failed; tokens_of() also usage (a line that is
// too long).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/llama/loader.h"
#include "model/timeline_model.h"

namespace mrrope::engine {

std::vector<Token> tokens_of(const llama_vocab* vocab, const std::string& file,
                             std::string_view text, bool special);  // without BOS
std::string text_of(const llama_vocab* vocab, const std::string& file,
                    std::span<const Token> tokens);
// The bytes of one token; special: also of a control token.
std::string piece_of(const llama_vocab* vocab, Token token, bool special);
std::optional<Token> bos_of(const llama_vocab* vocab);  // if the file asks for one
std::optional<ChatTemplate> chat_template_of(const llama_model* model);
std::string chat_prompt(const llama_model* model, const std::string& file,
                        std::span<const ChatMessage> messages);

// libllama looks for special tokens in a list of fragments that it walks from the start for every
// one it finds: 80,000 of them take 16 seconds. So a long text is cut after some special tokens,
// where both halves give the tokens of the whole: the ends of pieces with at most `most` of them.
std::vector<std::size_t> piece_ends(const llama_vocab* vocab, std::string_view text, bool special,
                                    std::size_t most);

// tokens_of() piece by piece, after BOS if it is asked for and the file has one; nullopt if
// give_up, called in between, returned true. Throws Error (usage) for a text that would take too
// long.
std::optional<std::vector<Token>> tokens_in_pieces(const llama_model* model,
                                                   const std::string& file, std::string_view text,
                                                   bool add_bos, bool special,
                                                   const std::function<bool()>& give_up);

// What a model of libllama has of a Tokenizer: that of its file.
template <typename Base>
class WithTokenizer : public Base {
 public:
  WithTokenizer(LlamaPtr<llama_model> model, const std::filesystem::path& file)
      : model_(std::move(model)),
        vocab_(llama_model_get_vocab(model_.get())),
        file_(file.filename().string()) {}

  std::vector<Token> tokenize(std::string_view text, bool add_bos, bool special) const override {
    return *tokenize_unless(text, add_bos, special, {});
  }
  std::optional<std::vector<Token>> tokenize_unless(
      std::string_view text, bool add_bos, bool special,
      const std::function<bool()>& give_up) const override {
    return tokens_in_pieces(model_.get(), file_, text, add_bos, special, give_up);
  }
  std::string detokenize(std::span<const Token> tokens) const override {
    return text_of(vocab_, file_, tokens);
  }
  std::optional<Token> bos() const override { return bos_of(vocab_); }
  std::string apply_chat_template(std::span<const ChatMessage> messages) const override {
    return chat_prompt(model_.get(), file_, messages);
  }
  bool tokenizer_is_remote() const override { return false; }

 protected:
  LlamaPtr<llama_model> model_;
  const llama_vocab* vocab_;
  std::string file_;  // its name
};

// std::regex recurses once per character of a match, so a long run of one character overflows an
// ordinary stack. An upper bound, in characters, on what one match of any pre-tokenizer expression
// of libllama can cover in this text: none matches across the end of a line that is followed by a
// word, or across a punctuation mark, a space and a word.
std::size_t longest_match(std::string_view text);

// Calls `work` with a stack on which a match of this many characters fits: on the caller's where
// that suffices, else on another thread, one at a time. Passes on what `work` throws. Throws Error:
// usage (no stack could hold it), out_of_memory.
void run_with_room_for_match(std::size_t characters, const std::function<void()>& work);

}  // namespace mrrope::engine
