// SPDX-License-Identifier: Apache-2.0
// Replies of OpenAI-compatible servers, read strictly: llama-server, vLLM, SGLang, mrrope serve. A
// reply of another shape is an Error (corrupt); every type and range is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/timeline_model.h"

namespace mrrope::engine {

struct RemoteModelInfo {
  std::string name;
  std::string owner;         // "llamacpp", "vllm", "sglang": printable
  std::int64_t context = 0;  // tokens it takes; 0: not reported
  std::int64_t trained = 0;  // its window; 0: not reported
};
std::vector<RemoteModelInfo> parse_models(const std::string& body);  // GET /v1/models

// GET /props of llama-server: the tokens that one request may have. 0: not reported.
std::int64_t parse_props_context(const std::string& body);

struct RemoteAnswer {
  std::string text;
  std::string finish;  // "stop", "length" or another reason of the server
  std::optional<std::int64_t> prompt_tokens;
  std::optional<std::int64_t> answer_tokens;
};
RemoteAnswer parse_answer(const std::string& body, bool chat);

std::vector<Token> parse_tokens(const std::string& body);  // POST /tokenize
std::string parse_text(const std::string& body);           // POST /detokenize, /apply-template

// The error message of a server, or the start of the body; printable and short.
std::string error_text(const std::string& body);

// Seconds that a Retry-After header asks for, as a number or a date, at most 300. 0: none.
double retry_after_seconds(const std::string& header, std::int64_t now);

}  // namespace mrrope::engine
