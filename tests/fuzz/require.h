// SPDX-License-Identifier: Apache-2.0
// What every fuzz target requires of the code it calls.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "mrrope/error.h"

namespace mrrope::fuzz {

inline void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// Every Error names something and stays on one line of plain characters.
template <typename Action>
void only_errors(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    require(!message.empty() && !error.hint().empty(), "an error without message or hint");
    for (const char c : message) {
      require(static_cast<unsigned char>(c) >= 0x20, "a control character in a message");
    }
  }
}

}  // namespace mrrope::fuzz
