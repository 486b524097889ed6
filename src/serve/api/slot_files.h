// SPDX-License-Identifier: Apache-2.0
// Conversations of slots in files: llama-server's POST /slots/{id}?action=save|restore|erase.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "serve/api/service.h"

namespace mrrope::serve {

// Waits until the slot writes no answer, unless give_up returns true before, and does it. Throws
// ApiError: 400 (the slot, the action, the name, or a file of another model or ladder), 404 (no
// such file), 501 (the server was started without a folder for them).
ordered_json slot_action_reply(const Service& service, Scheduler& scheduler,
                               const std::string& slot, const std::string& action,
                               std::string_view body, const std::function<bool()>& give_up);

}  // namespace mrrope::serve
