// SPDX-License-Identifier: Apache-2.0
// The bodies of ollama's API, read as strictly as those of OpenAI's.
#pragma once

#include <string>
#include <string_view>

#include "serve/api/request.h"

namespace mrrope::serve {

// context: tokens that a conversation can have; a larger num_ctx is refused. All throw ApiError.
CompletionRequest parse_ollama_chat(std::string_view body, const BodyLimits& limits,
                                    std::int64_t context);
// has_template: whether the prompt becomes a message of a chat, unless it is raw.
CompletionRequest parse_ollama_generate(std::string_view body, const BodyLimits& limits,
                                        std::int64_t context, bool has_template);
// The model that /api/show asks about; empty: none given.
std::string parse_ollama_show(std::string_view body, const BodyLimits& limits);

}  // namespace mrrope::serve
