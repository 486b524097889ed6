// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/tokenize.h"

#include <algorithm>

#include "base/text.h"
#include "engine/chat/chat.h"
#include "engine/host/deep_stack.h"
#include "mrrope/error.h"

namespace mrrope::engine {

namespace {

constexpr std::chrono::seconds kTemplateLimit{10};

// libllama aborts if such a vocabulary is asked for text.
void check_vocabulary(const llama_vocab* vocab, const std::string& file) {
  if (llama_vocab_type(vocab) != LLAMA_VOCAB_TYPE_NONE) return;
  throw Error(ErrorKind::unsupported, cat(file, " has no tokenizer"),
              "convert the model again, with its tokenizer files in the same folder");
}

// The bytes of the white space that begins a text.
std::size_t blank_at(std::string_view text) {
  for (const std::string_view blank :
       {" ", "\t", "\v", "\f", "\xC2\x85", "\xC2\xA0", "\xE1\x9A\x80", "\xE2\x80\xA8",
        "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"}) {
    if (text.substr(0, blank.size()) == blank) return blank.size();
  }
  return text.size() > 2 && text.substr(0, 2) == "\xE2\x80" && text[2] <= '\x8A' ? 3 : 0;
}

}  // namespace

void check_runs(const llama_model* model, const std::string& file, std::string_view text) {
  constexpr std::size_t kShort = 32;
  constexpr std::size_t kMostWork = 4'000'000;  // half a second
  char pre[32] = "";
  llama_model_meta_val_str(model, "tokenizer.ggml.pre", pre, sizeof pre);
  const bool digits = std::string_view(pre) == "superbpe";
  if (!digits && std::string_view(pre) != "deepseek-llm") return;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t work = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::size_t run = 0;
    const auto step = [&] {
      return at == text.size() ? 0
             : digits          ? std::size_t{is_digit(text[at])}
                               : blank_at(text.substr(at));
    };
    for (std::size_t bytes = step(); bytes > 0; bytes = step(), ++run) at += bytes;
    // Blanks before most characters belong to those.
    if (run <= kShort || (at == text.size() && !digits)) continue;
    if (!digits && !is_digit(text[at]) && static_cast<unsigned char>(text[at]) < 0x80) continue;
    work += run * run;
    if (work > kMostWork) {
      throw Error(ErrorKind::usage,
                  cat("a text with ", run, digits ? " digits" : " blanks",
                      " in a row takes the tokenizer of ", file, " (", pre, ") too long"),
                  "break or shorten such runs: 2000 in a row are possible once");
    }
  }
}

std::string piece_of(const llama_vocab* vocab, Token token, bool special) {
  std::string piece(64, '\0');
  int32_t length = llama_token_to_piece(vocab, token, piece.data(),
                                        static_cast<int32_t>(piece.size()), 0, special);
  if (length < 0) {
    piece.resize(static_cast<std::size_t>(-length));
    length = llama_token_to_piece(vocab, token, piece.data(), static_cast<int32_t>(piece.size()), 0,
                                  special);
  }
  piece.resize(static_cast<std::size_t>(std::max(length, 0)));
  return piece;
}

std::vector<Token> tokens_of(const llama_vocab* vocab, const std::string& file,
                             std::string_view text, bool special) {
  check_vocabulary(vocab, file);
  if (text.size() > static_cast<std::size_t>(INT32_MAX)) {
    throw Error(ErrorKind::usage, cat("a text of ", text.size(), " bytes is too long to tokenize"),
                "give it in parts below 2 GiB");
  }
  // One call suffices unless the tokenizer makes more tokens than bytes.
  std::vector<Token> tokens(text.size() + 16);
  int32_t count = 0;
  const auto call = [&] {
    count = llama_tokenize(vocab, text.data(), static_cast<int32_t>(text.size()), tokens.data(),
                           static_cast<int32_t>(tokens.size()), false, special);
  };
  // Only this kind splits text with regular expressions.
  const bool has_expressions = llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_BPE;
  const std::size_t longest = has_expressions ? longest_match(text) : 0;
  const auto run = [&] {
    try {
      run_with_room_for_match(longest, call);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(ErrorKind::failed,
                  cat("libllama cannot tokenize ", text.size(), " bytes of text: ", error.what()));
    }
  };
  run();
  if (count < 0 && count != INT32_MIN) {
    tokens.resize(static_cast<std::size_t>(-count));
    run();
  }
  if (count < 0) {
    throw Error(ErrorKind::failed, cat("libllama cannot tokenize ", text.size(), " bytes of text"));
  }
  tokens.resize(static_cast<std::size_t>(count));
  return tokens;
}

std::string text_of(const llama_vocab* vocab, const std::string& file,
                    std::span<const Token> tokens) {
  check_vocabulary(vocab, file);
  std::string text(tokens.size() * 8 + 16, '\0');
  const auto run = [&] {
    return llama_detokenize(vocab, tokens.data(), static_cast<int32_t>(tokens.size()), text.data(),
                            static_cast<int32_t>(text.size()), false, false);
  };
  int32_t length = run();
  if (length < 0) {
    text.resize(static_cast<std::size_t>(-length));
    length = run();
  }
  if (length < 0)
    throw Error(ErrorKind::failed,
                cat("libllama cannot turn ", tokens.size(), " tokens into text"));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::optional<Token> bos_of(const llama_vocab* vocab) {
  if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) return std::nullopt;
  const llama_token token = llama_vocab_bos(vocab);
  if (token == LLAMA_TOKEN_NULL || !llama_vocab_get_add_bos(vocab)) return std::nullopt;
  return token;
}

std::optional<ChatTemplate> chat_template_of(const llama_model* model) {
  const char* source = llama_model_chat_template(model, nullptr);
  if (source == nullptr) return std::nullopt;
  const llama_vocab* vocab = llama_model_get_vocab(model);
  const auto text = [&](llama_token token) {
    return token == LLAMA_TOKEN_NULL ? std::string() : piece_of(vocab, token, true);
  };
  return ChatTemplate{source, text(llama_vocab_bos(vocab)), text(llama_vocab_eos(vocab)),
                      bos_of(vocab).has_value()};
}

std::string chat_prompt(const llama_model* model, const std::string& file,
                        std::span<const ChatMessage> messages) {
  const std::optional<ChatTemplate> own = chat_template_of(model);
  if (!own) {
    throw Error(ErrorKind::unsupported, cat(file, " has no chat template"),
                "leave out --chat or --form chat, or use an instruct model");
  }
  try {
    return chat_renderer().render(*own, messages, kTemplateLimit);
  } catch (const Error& error) {
    throw Error(ErrorKind::unsupported,
                cat("the chat template of ", file, " cannot be applied: ", error.what()));
  }
}

}  // namespace mrrope::engine
