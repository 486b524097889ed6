// SPDX-License-Identifier: Apache-2.0
// The parts of a request that completions and chats have in common.
#pragma once

#include "serve/api/fields.h"
#include "serve/api/request.h"

namespace mrrope::serve {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;

// temperature, penalties, logit_bias, grammar and the like. `usual` is what applies where a field
// is not given.
void read_sampling(Fields& fields, CompletionRequest& request, const Sampling& usual);

// response_format and json_schema.
void read_schema(Fields& fields, CompletionRequest& request);

void read_stop(Fields& fields, CompletionRequest& request);

// cache_prompt and cache_salt.
void read_cache(Fields& fields, CompletionRequest& request);

// An object that has to be a JSON schema, as text.
std::string schema_text(const ordered_json& schema, const std::string& field);

// Refuses the fields that OpenAI, llama-server and vLLM know, that would change the answer and that
// are not supported.
void check_known_fields(Fields& fields);

}  // namespace mrrope::serve
