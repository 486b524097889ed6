// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "mrrope/error.h"

namespace mrrope::test {

// Runs f, which must throw Error of this kind with `part` in its message.
template <typename F>
void expect_error(ErrorKind kind, const std::string& part, F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    return;
  }
  ADD_FAILURE() << "nothing was thrown; expected: " << part;
}

}  // namespace mrrope::test
