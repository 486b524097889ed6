// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/command.h"

namespace mrrope {
namespace {

// "No key" must be meant, not the result of an unset variable.
TEST(ServeCommand, EmptyKeyFileIsRefused) {
  for (const char* name : {"''", "no-such-file"}) {
    const CommandResult r = run_command(
        std::string("serve " MRROPE_TINY_MODEL " --port 0 --dry-run --api-key-file ") + name);
    EXPECT_EQ(r.exit_code, 2) << name << r.err;
    EXPECT_NE(r.err.find("key"), std::string::npos) << r.err;
  }
  EXPECT_EQ(run_command("serve " MRROPE_TINY_MODEL " --dry-run").exit_code, 0);
}

}  // namespace
}  // namespace mrrope
