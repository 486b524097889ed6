// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/tokenize.h"
#include "models/gguf_writer.h"
#include "support/test.h"

namespace mrrope::engine {
namespace {

// A vocabulary with special tokens that overlap themselves and each other.
class SpecialText : public testing::Test {
 protected:
  void SetUp() override {
    start_llama();
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    std::vector<std::int32_t> types = {2, 3, 3};
    for (const char* word :
         {"<|im_end|>", "<|im_start|>", "aXa", "XaX", "a<s", "<|", "  ", "    "}) {
      tokens.push_back(word);
      types.push_back(word[0] == '<' && word[1] == '|' && word[2] == 'i' ? 3 : 4);
    }
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", byte);
      tokens.push_back(name);
      types.push_back(6);
    }
    for (const char* word : {"a", "X", "b", "ab", "ba", "\xe2\x96\x81",
                             "\xe2\x96\x81"
                             "a"}) {
      tokens.push_back(word);
      types.push_back(1);
    }
    std::vector<float> scores;
    for (std::size_t i = 0; i < tokens.size(); ++i) scores.push_back(-float(i));
    test::GgufWriter file;
    file.text("general.architecture", "llama")
        .u32("llama.context_length", 64)
        .u32("llama.embedding_length", 64)
        .u32("llama.block_count", 1)
        .u32("llama.attention.head_count", 4)
        .text("tokenizer.ggml.model", "llama")
        .strings("tokenizer.ggml.tokens", tokens)
        .array("tokenizer.ggml.scores", 6, scores)
        .array("tokenizer.ggml.token_type", 5, types);
    const auto path = folder_.write("vocabulary.gguf", file.bytes());
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    model_.reset(llama_model_load_from_file(path.c_str(), params));
    ASSERT_TRUE(model_) << take_llama_log();
    vocab_ = llama_model_get_vocab(model_.get());
  }

  std::vector<Token> joined(const std::string& text, bool special, std::size_t most) {
    std::vector<Token> tokens;
    std::size_t begin = 0;
    for (const std::size_t end : piece_ends(vocab_, text, special, most)) {
      const auto piece = tokens_of(vocab_, "f", text.substr(begin, end - begin), special);
      tokens.insert(tokens.end(), piece.begin(), piece.end());
      begin = end;
    }
    EXPECT_EQ(begin, text.size());
    return tokens;
  }

  test::TempFolder folder_;
  LlamaPtr<llama_model> model_;
  const llama_vocab* vocab_ = nullptr;
};

TEST_F(SpecialText, PiecesGiveTheSameTokensAsTheWhole) {
  const char* words[] = {
      "<|im_end|>", "<|im_start|>", "aXa", "X", "a", "<s>",      "<s", "<|", " ", "  ",
      "b",          "</s>",         "XaX", "<", ">", "im_end|>", "ab"};
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += words[random() % std::size(words)];
    for (const bool special : {true, false}) {
      const auto whole = tokens_of(vocab_, "f", text, special);
      for (const std::size_t most : {1, 3, 16}) {
        ASSERT_EQ(joined(text, special, most), whole) << text << " " << most << special;
      }
    }
  }
}

TEST_F(SpecialText, ManySpecialTokensAreSplitAndCanBeCancelled) {
  std::string text;
  for (int i = 0; i < 80000; ++i) text += "<|im_end|>";
  EXPECT_EQ(piece_ends(vocab_, text, true, 256).size(), (80000U + 255) / 256);
  int asked = 0;
  EXPECT_FALSE(
      tokens_in_pieces(model_.get(), "f", text, false, true, [&] { return ++asked == 3; }));
  EXPECT_EQ(asked, 3);
  const auto tokens = tokens_in_pieces(model_.get(), "f", text, false, true, {});
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->size(), 80000U);
  EXPECT_EQ(tokens->front(), tokens->back());
}

}  // namespace
}  // namespace mrrope::engine
