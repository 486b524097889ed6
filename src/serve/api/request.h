// SPDX-License-Identifier: Apache-2.0
// The JSON bodies of OpenAI's API, read strictly into plain structs. A field that would change the
// answer and is not supported is refused by name, unless its value is the one that changes nothing;
// every other field is listed in `ignored`, which the answer shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/timeline_model.h"
#include "serve/api/error.h"

namespace mrrope::serve {

// What is read of a body. A short text can hold many values, which take far more memory than it.
struct BodyLimits {
  std::size_t bytes = 0;
  std::size_t values = std::size_t{1} << 18;
};

struct CompletionRequest {
  bool chat = false;
  std::string model;                   // empty: not given
  std::string prompt;                  // of a completion
  std::vector<Token> prompt_tokens;    // instead of the text, if the client sent tokens
  std::vector<ChatMessage> messages;   // of a chat
  std::optional<std::int64_t> length;  // max_tokens
  Sampling sampling;
  bool has_seed = false;
  std::vector<std::string> stop;
  std::optional<int> logprobs;  // how many of the most likely tokens to list with the chosen one
  bool cache_prompt = true;     // use a prefix that is cached
  bool stream = false;
  bool stream_usage = false;
  std::vector<std::string> ignored;  // fields that change nothing here
};

struct TokenizeRequest {
  std::string content;
  bool add_special = false;
  bool parse_special = true;
};

// All throw ApiError.
CompletionRequest parse_completion(std::string_view body, const BodyLimits& limits);
CompletionRequest parse_chat(std::string_view body, const BodyLimits& limits);
TokenizeRequest parse_tokenize(std::string_view body, const BodyLimits& limits);
std::vector<Token> parse_detokenize(std::string_view body, const BodyLimits& limits);

}  // namespace mrrope::serve
