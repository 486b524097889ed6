// SPDX-License-Identifier: Apache-2.0
// What a person types into a chat: with history and editing where libedit is installed.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace mrrope::cli {

// The next line of input, without its end; nothing at the end of input. The prompt is for a person.
using ReadLine = std::function<std::optional<std::string>(const std::string& prompt)>;

// From standard input, on a terminal with libedit, if the system has it. There Ctrl-C drops what is
// being typed: it throws Error (interrupted), with what ends the chat.
ReadLine standard_input();

// A message of one line or more: one that ends with a backslash goes on in the next, and lines
// between two """ belong together.
std::optional<std::string> read_message(const ReadLine& read, const std::string& prompt);

}  // namespace mrrope::cli
