// SPDX-License-Identifier: Apache-2.0
// Long texts for libllama's tokenizer. It looks for special tokens in a list of fragments that it
// walks from the start for every one it finds: 80,000 of them take 16 seconds. So a text is cut
// after some special tokens, where both halves give the tokens of the whole.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/llama/llama_api.h"
#include "model/tokenizer.h"

namespace mrrope::engine {

// Where to cut: the ends of the pieces, the last of which is the end of the text. No piece holds
// more than `most` special tokens.
std::vector<std::size_t> piece_ends(const llama_vocab* vocab, std::string_view text, bool special,
                                    std::size_t most);

// check_runs(), then tokens_of() piece by piece, after BOS if it is asked for and the file has one;
// nullopt if give_up, called in between, returned true.
std::optional<std::vector<Token>> tokens_in_pieces(const llama_model* model,
                                                   const std::string& file, std::string_view text,
                                                   bool add_bos, bool special,
                                                   const std::function<bool()>& give_up);

}  // namespace mrrope::engine
