// SPDX-License-Identifier: Apache-2.0
// What clients ask for: the JSON bodies of OpenAI's API, read strictly into plain structs. A field
// that would change the answer and is not supported is refused by name; one that would not is kept
// in `ignored`, which the answer shows.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/timeline_model.h"

namespace mrrope {

// A refusal in OpenAI's shape.
class ApiError : public std::runtime_error {
 public:
  ApiError(int http_status, const std::string& message, std::string about = {},
           std::string word = {})
      : std::runtime_error(message),
        status(http_status),
        param(std::move(about)),
        code(std::move(word)) {}

  int status;
  std::string param;  // the field it is about; empty: none
  std::string code;   // e.g. "context_length_exceeded"; empty: none
};

struct CompletionRequest {
  bool chat = false;
  std::string model;                   // empty: not given
  std::string prompt;                  // of a completion
  std::vector<Token> prompt_tokens;    // instead of the text, where the client counts in tokens
  std::vector<ChatMessage> messages;   // of a chat
  std::optional<std::int64_t> length;  // max_tokens
  Sampling sampling;
  bool has_seed = false;
  std::vector<std::string> stop;
  std::optional<int> logprobs;  // how many of the likeliest tokens to list beside the chosen one
  bool stream = false;
  bool stream_usage = false;
  std::vector<std::string> ignored;  // fields that change nothing here
};

struct TokenizeRequest {
  std::string content;
  bool add_special = false;
  bool parse_special = true;
};

// All throw ApiError. largest: bytes.
CompletionRequest parse_completion(std::string_view body, std::size_t largest);
CompletionRequest parse_chat(std::string_view body, std::size_t largest);
TokenizeRequest parse_tokenize(std::string_view body, std::size_t largest);
std::vector<Token> parse_detokenize(std::string_view body, std::size_t largest);

}  // namespace mrrope
