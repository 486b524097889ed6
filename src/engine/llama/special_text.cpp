// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/special_text.h"

#include <algorithm>
#include <bitset>
#include <cctype>

#include "engine/llama/tokenize.h"

namespace mrrope::engine {

namespace {

constexpr std::size_t kShort = 16384;  // bytes that need no cut, whatever they hold
constexpr std::size_t kMostSpecial = 256;

struct Special {
  std::string_view text;
  bool strips_left;
  bool strips_right;
};

// The pairs of bytes in a text, to skip special tokens that it cannot hold.
class Pairs {
 public:
  explicit Pairs(std::string_view text) {
    for (std::size_t i = 0; i + 1 < text.size(); ++i) seen_.set(at(text[i], text[i + 1]));
  }
  bool may_hold(std::string_view word) const {
    return word.size() < 2 || seen_.test(at(word[0], word[1]));
  }

 private:
  static std::size_t at(char a, char b) {
    return 256U * static_cast<unsigned char>(a) + static_cast<unsigned char>(b);
  }
  std::bitset<65536> seen_;
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
  const Pairs pairs(text);
  std::vector<Special> found;
  for (const llama_token token : order) {
    const int attributes = llama_vocab_get_attr(vocab, token);
    if (!special && (attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN))) continue;
    const std::string_view own = llama_vocab_get_text(vocab, token);
    if (own.empty() || !pairs.may_hold(own)) continue;
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
