// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/tokenize.h"

#include <pthread.h>

#include <algorithm>
#include <bitset>
#include <cctype>
#include <cstring>
#include <future>
#include <mutex>

#include "base/text.h"
#include "engine/chat/chat.h"

namespace mrrope::engine {

namespace {

constexpr std::chrono::seconds kTemplateLimit{10};

// libllama aborts if such a vocabulary is asked for text.
void check_vocabulary(const llama_vocab* vocab, const std::string& file) {
  if (llama_vocab_type(vocab) != LLAMA_VOCAB_TYPE_NONE) return;
  unsupported(cat(file, " has no tokenizer"),
              "convert the model again, with its tokenizer files in the same folder");
}

// Lets libllama write: it returns how much it wrote, or minus the size that it needs. False: it
// failed.
template <typename Buffer, typename Write>
bool fill(Buffer& buffer, const Write& write) {
  int32_t size = write();
  if (size < 0 && size != INT32_MIN) {
    buffer.resize(std::size_t(-size));
    size = write();
  }
  buffer.resize(std::size_t(std::max(size, 0)));
  return size >= 0;
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

// A character of a match takes some 330 bytes of stack in an optimised libllama.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kBytesPerCharacter = 8192;
#else
constexpr std::size_t kBytesPerCharacter = 1024;
#endif
constexpr std::size_t kOrdinary = 2048;  // characters that fit any thread's stack
constexpr std::size_t kMost = std::size_t{4} << 20;
constexpr std::size_t kSpare = std::size_t{1} << 20;  // for everything but the match
constexpr std::size_t kPage = std::size_t{1} << 16;   // a multiple of any page size

bool is_word_or_mark(unsigned char c) { return c > ' ' && c < 0x7F; }

bool is_mark(unsigned char c) {
  const unsigned char lower = c | 0x20;
  return is_word_or_mark(c) && !(c >= '0' && c <= '9') && !(lower >= 'a' && lower <= 'z');
}

// Whether a character that is certainly not white space begins with this byte. Some expressions
// take slashes along with the ends of lines.
bool begins_line(unsigned char c) {
  if (c < 0x80) return is_word_or_mark(c) && c != '/';
  return c >= 0xC3 && c <= 0xF4 && c != 0xE1 && c != 0xE2 && c != 0xE3;
}

constexpr std::size_t kShort = 16384;  // bytes that need no cut, whatever they hold
constexpr std::size_t kMostSpecial = 256;

struct Special {
  std::string_view text;
  bool strips_left;
  bool strips_right;
};

// Those that the text may hold, in the order in which libllama looks for them.
std::vector<Special> special_tokens(const llama_vocab* vocab, std::string_view text, bool special) {
  const auto size_of = [&](llama_token token) {
    return std::string_view(llama_vocab_get_text(vocab, token)).size();
  };
  std::vector<llama_token> order;
  for (llama_token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
    if (llama_vocab_get_attr(vocab, token) &
        (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_USER_DEFINED | LLAMA_TOKEN_ATTR_UNKNOWN)) {
      order.push_back(token);
    }
  }
  // The same call as in libllama, so that tokens of one length are in the same order too.
  std::sort(order.begin(), order.end(),
            [&](llama_token a, llama_token b) { return size_of(a) > size_of(b); });
  // The pairs of bytes in the text, to skip special tokens that it cannot hold.
  const auto pair_at = [](std::string_view bytes, std::size_t i) {
    return 256U * static_cast<unsigned char>(bytes[i]) + static_cast<unsigned char>(bytes[i + 1]);
  };
  std::bitset<65536> pairs;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) pairs.set(pair_at(text, i));
  std::vector<Special> found;
  for (const llama_token token : order) {
    const int attributes = llama_vocab_get_attr(vocab, token);
    if (!special && (attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN))) continue;
    const std::string_view own = llama_vocab_get_text(vocab, token);
    if (own.empty() || (own.size() > 1 && !pairs.test(pair_at(own, 0)))) continue;
    found.push_back({own, (attributes & LLAMA_TOKEN_ATTR_LSTRIP) != 0,
                     (attributes & LLAMA_TOKEN_ATTR_RSTRIP) != 0});
  }
  return found;
}

struct Fragment {
  std::size_t begin;
  std::size_t end;
  bool token;
};

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Splits a fragment of text at every occurrence of one special token.
void cut(std::string_view text, Fragment fragment, const Special& special,
         std::vector<Fragment>& out) {
  while (fragment.begin < fragment.end) {
    const std::size_t match = text.substr(0, fragment.end).find(special.text, fragment.begin);
    if (match == std::string_view::npos) break;
    std::size_t left = match;
    while (special.strips_left && left > fragment.begin && is_space(text[left - 1])) --left;
    if (left > fragment.begin) out.push_back({fragment.begin, left, false});
    const std::size_t after = match + special.text.size();
    out.push_back({match, after, true});
    fragment.begin = after;
    while (special.strips_right && fragment.begin < fragment.end &&
           is_space(text[fragment.begin])) {
      ++fragment.begin;
    }
  }
  if (fragment.begin < fragment.end) out.push_back(fragment);
}

}  // namespace

std::size_t longest_match(std::string_view text) {
  std::size_t longest = 0;
  std::size_t current = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80 && c < 0xC0) continue;  // within a character
    const auto before = static_cast<unsigned char>(i > 0 ? text[i - 1] : '\0');
    const bool after_line = (before == '\n' || before == '\r') && begins_line(c);
    const bool after_mark = before == ' ' && is_word_or_mark(c) && i > 1 &&
                            is_mark(static_cast<unsigned char>(text[i - 2]));
    if (after_line || after_mark) {
      longest = std::max(longest, current);
      current = 1;  // a match may begin with the white space in front
    }
    ++current;
  }
  return std::max(longest, current) + 1;
}

void run_with_room_for_match(std::size_t characters, const std::function<void()>& work) {
  if (characters <= kOrdinary) return work();
  refuse_if(
      characters > kMost,
      cat("a line of ", characters, " characters is too long to tokenize (at most ", kMost, ")"),
      "break it into several lines");
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  std::packaged_task<void()> task(work);
  const auto run = [](void* data) -> void* {
    (*static_cast<std::packaged_task<void()>*>(data))();
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_t thread{};
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    // Memory is taken only where the stack is touched, and a guard page is at its end.
    const std::size_t stack = characters * kBytesPerCharacter + kSpare;
    error = pthread_attr_setstacksize(&attributes, stack / kPage * kPage);
    if (error == 0) error = pthread_create(&thread, &attributes, run, &task);
    pthread_attr_destroy(&attributes);
  }
  throw_if(error != 0, ErrorKind::out_of_memory,
           cat("no thread with a stack for ", characters, " characters: ", strerror(error)),
           "break the longest line of the text into several");
  pthread_join(thread, nullptr);
  task.get_future().get();
}

// Throws Error (usage) for a text that would take the tokenizer too long: with two of libllama's
// the time grows with the square of a run of digits, or of blanks.
static void check_runs(const llama_model* model, const std::string& file, std::string_view text) {
  constexpr std::size_t kShortRun = 32;
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
    if (run <= kShortRun || (at == text.size() && !digits)) continue;
    if (!digits && !is_digit(text[at]) && static_cast<unsigned char>(text[at]) < 0x80) continue;
    work += run * run;
    refuse_if(work > kMostWork,
              cat("a text with ", run, digits ? " digits" : " blanks",
                  " in a row takes the tokenizer of ", file, " (", pre, ") too long"),
              "break or shorten such runs: 2000 in a row are possible once");
  }
}

std::string piece_of(const llama_vocab* vocab, Token token, bool special) {
  std::string piece(64, '\0');
  fill(piece, [&] {
    return llama_token_to_piece(vocab, token, piece.data(), int32_t(piece.size()), 0, special);
  });
  return piece;
}

std::vector<Token> tokens_of(const llama_vocab* vocab, const std::string& file,
                             std::string_view text, bool special) {
  check_vocabulary(vocab, file);
  if (text.size() > std::size_t(INT32_MAX)) {
    refuse(cat("a text of ", text.size(), " bytes is too long to tokenize"),
           "give it in parts below 2 GiB");
  }
  // Only this kind splits text with regular expressions.
  const bool has_expressions = llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_BPE;
  const std::size_t longest = has_expressions ? longest_match(text) : 0;
  // One call suffices unless the tokenizer makes more tokens than bytes.
  std::vector<Token> tokens(text.size() + 16);
  std::string why;
  try {
    const bool done = fill(tokens, [&] {
      int32_t count = 0;
      run_with_room_for_match(longest, [&] {
        count = llama_tokenize(vocab, text.data(), int32_t(text.size()), tokens.data(),
                               int32_t(tokens.size()), false, special);
      });
      return count;
    });
    if (done) return tokens;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    why = cat(": ", error.what());
  }
  fail(cat("libllama cannot tokenize ", text.size(), " bytes of text", why));
}

std::string text_of(const llama_vocab* vocab, const std::string& file,
                    std::span<const Token> tokens) {
  check_vocabulary(vocab, file);
  std::string text(tokens.size() * 8 + 16, '\0');
  const bool done = fill(text, [&] {
    return llama_detokenize(vocab, tokens.data(), int32_t(tokens.size()), text.data(),
                            int32_t(text.size()), false, false);
  });
  if (done) return text;
  fail(cat("libllama cannot turn ", tokens.size(), " tokens into text"));
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
  unsupported_if(!own, cat(file, " has no chat template"),
                 "use an instruct model, or mrrope generate or --form completion, which need none");
  try {
    return chat_renderer().render(*own, messages, kTemplateLimit);
  } catch (const Error& error) {
    unsupported(cat("the chat template of ", file, " cannot be applied: ", error.what()));
  }
}

std::vector<std::size_t> piece_ends(const llama_vocab* vocab, std::string_view text, bool special,
                                    std::size_t most) {
  std::vector<Fragment> fragments = {{0, text.size(), false}};
  std::vector<Fragment> next;
  for (const Special& token : special_tokens(vocab, text, special)) {
    if (text.find(token.text) == std::string_view::npos) continue;
    next.clear();
    for (const Fragment& fragment : fragments) {
      if (fragment.token) {
        next.push_back(fragment);
      } else {
        cut(text, fragment, token, next);
      }
    }
    fragments.swap(next);
  }
  // Text after a cut is read as text after a special token is. White space that such a token strips
  // stays with it.
  std::vector<std::size_t> ends;
  std::size_t count = 0;
  for (std::size_t i = 0; i + 1 < fragments.size(); ++i) {
    if (!fragments[i].token || ++count < most) continue;
    ends.push_back(fragments[i + 1].begin);
    count = 0;
  }
  ends.push_back(text.size());
  return ends;
}

std::optional<std::vector<Token>> tokens_in_pieces(const llama_model* model,
                                                   const std::string& file, std::string_view text,
                                                   bool add_bos, bool special,
                                                   const std::function<bool()>& give_up) {
  check_runs(model, file, text);
  const llama_vocab* vocab = llama_model_get_vocab(model);
  std::vector<Token> tokens;
  if (const auto bos = bos_of(vocab); add_bos && bos) tokens.push_back(*bos);
  const bool whole = text.size() <= kShort || llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE;
  const std::vector<std::size_t> ends =
      whole ? std::vector{text.size()} : piece_ends(vocab, text, special, kMostSpecial);
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    if (!whole && give_up && give_up()) return std::nullopt;
    const std::vector<Token> piece =
        tokens_of(vocab, file, text.substr(begin, end - begin), special);
    tokens.insert(tokens.end(), piece.begin(), piece.end());
    begin = end;
  }
  return tokens;
}

}  // namespace mrrope::engine
