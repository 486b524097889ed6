// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/vocabulary.h"

#include "engine/llama/loader.h"
#include "engine/llama/special_text.h"
#include "engine/llama/tokenize.h"
#include "formats/digest.h"

namespace mrrope::engine {

namespace {

class Vocabulary final : public NamedTokenizer {
 public:
  Vocabulary(LlamaPtr<llama_model> model, const std::filesystem::path& file)
      : model_(std::move(model)),
        vocab_(llama_model_get_vocab(model_.get())),
        file_(file.filename().string()),
        digest_(model_digest({file})) {}

  std::string name() const override { return "vocabulary " + digest_; }
  std::vector<Token> tokenize(std::string_view text, bool add_bos, bool special) const override {
    return *tokens_in_pieces(model_.get(), file_, text, add_bos, special, {});
  }
  std::string detokenize(std::span<const Token> tokens) const override {
    return text_of(vocab_, file_, tokens);
  }
  bool tokenizer_is_remote() const override { return false; }
  std::optional<Token> bos() const override { return bos_of(vocab_); }
  std::string apply_chat_template(std::span<const ChatMessage> messages) const override {
    return chat_prompt(model_.get(), file_, messages);
  }

 private:
  LlamaPtr<llama_model> model_;
  const llama_vocab* vocab_;
  std::string file_;
  std::string digest_;
};

}  // namespace

std::unique_ptr<NamedTokenizer> open_vocabulary(const std::filesystem::path& file) {
  return std::make_unique<Vocabulary>(load_vocabulary(file), file);
}

}  // namespace mrrope::engine
