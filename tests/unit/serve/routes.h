// SPDX-License-Identifier: Apache-2.0
// Routes by the names that transcripts have for them.
#pragma once

#include <map>
#include <string>

#include "serve/api/request.h"

namespace mrrope::serve {

inline Route route_named(const std::string& name) {
  static const std::map<std::string, Route> routes = {{"completion", Route::completion},
                                                      {"llama_completion", Route::llama_completion},
                                                      {"chat", Route::chat},
                                                      {"responses", Route::responses},
                                                      {"ollama_chat", Route::ollama_chat},
                                                      {"ollama_generate", Route::ollama_generate},
                                                      {"messages", Route::messages},
                                                      {"count_tokens", Route::count_tokens}};
  return routes.at(name);
}

}  // namespace mrrope::serve
