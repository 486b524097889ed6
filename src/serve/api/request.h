// SPDX-License-Identifier: Apache-2.0
// The JSON bodies of OpenAI's and Anthropic's APIs, llama-server and ollama, read strictly into
// plain structs. A field that would change the answer and is not supported is refused by name,
// unless its value is the one that changes nothing; every other field is listed in `ignored`, which
// the answer shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat/chat.h"
#include "model/timeline_model.h"

namespace mrrope::serve {

// A refusal in OpenAI's shape.
class ApiError : public std::runtime_error {
 public:
  ApiError(int http_status, const std::string& message, std::string about = {},
           std::string word = {})
      : std::runtime_error(message),
        status(http_status),
        param(std::move(about)),
        code(std::move(word)) {}

  // A prompt that does not fit, in tokens.
  struct Excess {
    std::int64_t prompt;
    std::int64_t context;
  };

  int status;
  std::string param;  // the field it is about; empty: none
  std::string code;   // for programs, e.g. "context_length_exceeded"; empty: none
  std::optional<Excess> excess;
};

// What a body is read by. A short text can hold many values, which take far more memory than it.
struct BodyLimits {
  std::size_t bytes = 0;
  std::size_t values = std::size_t{1} << 18;
  std::int64_t context = std::int64_t{1} << 40;  // tokens of one conversation
  bool has_template = true;                      // a prompt of ollama's becomes a message
};

// A change of the logit of one token, or of every token of a text.
struct Bias {
  std::optional<Token> token;
  std::string text;
  float value = 0;  // minus infinity: never
};

// A text, or tokens if the client sent those.
struct PromptPart {
  std::string text;
  std::vector<Token> tokens;
};

// A route that takes a body with a prompt. ollama's options are an object inside the body.
enum class Route : unsigned {
  completion = 1,
  chat = 2,
  responses = 4,
  llama_completion = 8,
  ollama_chat = 16,
  ollama_generate = 32,
  ollama_options = 64,
  messages = 128,  // Anthropic's
  count_tokens = 256,
  embeddings = 1024,
  ollama_embed = 2048,
  ollama_embeddings = 4096  // ollama's older one
};

// How a prompt is answered.
struct AnswerSettings {
  Sampling sampling;
  std::vector<std::string> stop;
  std::optional<int> logprobs;  // how many of the most likely tokens to list with the chosen one
  bool cache_prompt = true;     // use a prefix that is cached; else all of it is computed
  std::string cache_salt;       // vLLM's: a prefix is shared between requests of the same salt only
  bool return_progress = false;  // of reading the prompt: every part of it, in the stream
  bool return_tokens = false;    // llama-server's: the tokens of the answer, without logprobs too
};

struct CompletionRequest : AnswerSettings {
  Route route = Route::completion;  // decides the shape of the answer
  bool chat = false;
  bool load_only = false;                        // ollama's: an empty prompt loads the model
  std::string model;                             // empty: not given
  std::vector<std::vector<PromptPart>> prompts;  // of a completion, each with its own answers
  engine::ChatInputs conversation;               // of a chat; checked
  std::vector<std::string> callable;             // its tools that may be called
  std::optional<std::int64_t> length;            // max_tokens
  std::vector<Bias> bias;
  std::string schema;        // JSON: what the answer has to match; empty: anything
  std::string schema_field;  // where it was given
  bool has_seed = false;
  int answers = 1;    // n, to each prompt
  bool echo = false;  // the answer begins with the prompt
  bool stream = false;
  bool stream_usage = false;
  std::vector<std::string> ignored;  // fields that change nothing here
};

struct TokenizeRequest {
  std::string content;
  bool add_special = false;
  bool parse_special = true;
  bool with_pieces = false;  // give the text of each token
};

// All throw ApiError.
CompletionRequest parse_request(std::string_view body, Route route, const BodyLimits& limits);
TokenizeRequest parse_tokenize(std::string_view body, const BodyLimits& limits);
std::vector<Token> parse_detokenize(std::string_view body, const BodyLimits& limits);

}  // namespace mrrope::serve
