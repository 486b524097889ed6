// SPDX-License-Identifier: Apache-2.0
// A model behind an OpenAI-compatible server: vLLM, SGLang, llama-server, mrrope serve. It can only
// answer whole prompts, under the scaling that its server gave it.
//
// Completions send token ids, so that the server reads exactly the tokens that were counted here,
// with the one BOS, and no template or second BOS of its own. Chats send the text of one user
// message; the server's template comes on top. Answers are greedy (temperature 0).
//
// Failures are retried, with growing pauses: no connection, time-outs, partial or unreadable
// replies, status 408, 425, 429 and 5xx (Retry-After is respected). Other refusals of one prompt
// (400, 413, 422) fail that prompt; 401, 403, 404 and a wrong certificate end the run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/prompt_model.h"

namespace mrrope::engine {

struct Url {
  bool tls = false;
  std::string host;
  int port = 0;
  std::string path;  // "/v1": no slash at its end; empty for the root
  bool loopback() const;
};

// http://host:port/path. Throws Error (usage): another scheme, a name and a password (they would
// appear in run.json), a query; unsupported: https in a build without TLS.
Url parse_url(const std::string& text);

struct RemoteOptions {
  std::string url;    // http://host:port/v1
  std::string key;    // sent with every request, never shown
  std::string model;  // its name there; empty: the only one there is
  bool chat = false;  // /chat/completions instead of /completions
  int parallel = 32;
  double seconds = 600;     // time-out of one request
  int retries = 8;          // of one request
  double first_wait = 0.5;  // seconds before the first of them; doubles each time, up to 30
  std::filesystem::path vocabulary;  // GGUF; empty: the server's tokenizer
  std::int64_t context = 0;          // used if the server does not report its own
};

// Asks for the model's name, finds out which tokenizer there is. Throws Error: usage (no such
// model, no tokenizer), unsupported, failed (no connection).
std::unique_ptr<PromptModel> open_remote(const RemoteOptions& options);

// ---- Replies of such servers, read strictly. One of another shape is an Error (corrupt).

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
