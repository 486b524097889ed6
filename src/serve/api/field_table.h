// SPDX-License-Identifier: Apache-2.0
// Every known field of a request: of OpenAI's completions, chats and responses, of llama-server,
// vLLM and ollama. Requests are read by this table, and docs/serve.md lists it.
#pragma once

#include <string>

namespace mrrope::serve {

// The tables of docs/serve.md, in Markdown.
std::string fields_markdown();

}  // namespace mrrope::serve
