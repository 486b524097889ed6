// SPDX-License-Identifier: Apache-2.0
// Routes by the names that transcripts have for them, and refusals as they show them.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/text.h"
#include "serve/api/request.h"

namespace mrrope::serve {

inline Route route_named(const std::string& name) {
  static const std::map<std::string, Route> routes = {
      {"completion", Route::completion},
      {"llama_completion", Route::llama_completion},
      {"chat", Route::chat},
      {"responses", Route::responses},
      {"ollama_chat", Route::ollama_chat},
      {"ollama_generate", Route::ollama_generate},
      {"messages", Route::messages},
      {"count_tokens", Route::count_tokens},
      {"embeddings", Route::embeddings},
      {"ollama_embed", Route::ollama_embed},
      {"ollama_embeddings", Route::ollama_embeddings}};
  return routes.at(name);
}

// Status, field and message, or the answer.
inline std::string refusal(const std::function<std::string()>& answer) {
  try {
    return answer();
  } catch (const ApiError& error) {
    return cat(error.status, " ", error.param, ": ", error.what());
  }
}

}  // namespace mrrope::serve
