// SPDX-License-Identifier: Apache-2.0
// The bodies of OpenAI's /v1/responses, read as chats. Nothing is kept between requests: the input
// is the whole conversation.
#pragma once

#include <string_view>

#include "serve/api/request.h"

namespace mrrope::serve {

// Throws ApiError.
CompletionRequest parse_responses(std::string_view body, const BodyLimits& limits);

}  // namespace mrrope::serve
