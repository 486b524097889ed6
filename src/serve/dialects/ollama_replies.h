// SPDX-License-Identifier: Apache-2.0
// What ollama's clients ask before they chat: which models there are, and what they can do.
#pragma once

#include <string_view>

#include "serve/api/service.h"

namespace mrrope::serve {

ordered_json ollama_tags_reply(const Service& service);
ordered_json ollama_show_reply(const Service& service, std::string_view body);
ordered_json ollama_version_reply();

}  // namespace mrrope::serve
