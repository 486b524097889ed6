// SPDX-License-Identifier: Apache-2.0
// The parts of a request that only chats have: messages, tools, and what the template is given.
#pragma once

#include "serve/api/fields.h"
#include "serve/api/request.h"

namespace mrrope::serve {

void read_messages(Fields& fields, ChatRequest& chat);

// tools and tool_choice.
void read_tools(Fields& fields, ChatRequest& chat);

// Everything else about the template. After read_schema(): tools and a schema exclude each other.
void read_chat_options(Fields& fields, CompletionRequest& request);

}  // namespace mrrope::serve
