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

TEST(ServeCommand, OriginsAndNamesAreChecked) {
  const std::string serve = "serve " MRROPE_TINY_MODEL " --dry-run ";
  for (const char* bad :
       {"--cors ''", "--cors localhost:3000", "--cors http://", "--cors http://localhost:3000/",
        "--cors http://a,http://b", "--alias ''"}) {
    const CommandResult r = run_command(serve + bad);
    EXPECT_EQ(r.exit_code, 2) << bad << r.err;
    EXPECT_NE(r.err.find(std::string(bad).substr(0, 6)), std::string::npos) << r.err;
  }
  for (const char* good : {"--cors '*'", "--cors https://app.example", "--alias gpt --any-model"}) {
    EXPECT_EQ(run_command(serve + good).exit_code, 0) << good;
  }
}

TEST(ServeCommand, ADryRunThatDoesNotFitFails) {
  const CommandResult r =
      run_command("serve " MRROPE_TINY_MODEL " --dry-run --ctx 512m --method pro --parallel 2");
  EXPECT_EQ(r.exit_code, 1) << r.err;
  EXPECT_NE(r.out.find("KV cache"), std::string::npos) << r.out;
  EXPECT_NE(r.err.find("does not fit"), std::string::npos) << r.err;
}

TEST(ServeCommand, FlagsThatExcludeEachOtherAreNamed) {
  const std::string serve = "serve " MRROPE_TINY_MODEL " --dry-run --ctx 4k --parallel 3 ";
  for (const char* bad : {"--slot-save-path no-such-folder", "--slot-save-path ''",
                          "--slot-save-path /tmp --kv-unified", "--deterministic --kv-unified"}) {
    const CommandResult r = run_command(serve + bad);
    EXPECT_EQ(r.exit_code, 2) << bad << r.err;
    EXPECT_NE(r.err.find(std::string(bad).substr(0, 10)), std::string::npos) << r.err;
  }
  EXPECT_NE(run_command(serve).out.find("3 conversations of 4096 tokens each"), std::string::npos);
  EXPECT_NE(run_command(serve + "--kv-unified").out.find("3 conversations of 4096 tokens together"),
            std::string::npos);
  for (const char* good : {"--slot-save-path /tmp --deterministic", "--no-kv-unified",
                           "--slot-save-path /tmp --kv-unified --method pro"}) {
    EXPECT_EQ(run_command(serve + good).exit_code, 0) << good;
  }
}

}  // namespace
}  // namespace mrrope
