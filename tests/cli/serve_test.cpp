// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/command.h"

namespace mrrope {
namespace {

// "No key" must be meant, not the result of an unset variable.
TEST(ServeCommand, EmptyKeyFileIsRefused) {
  for (const char* name : {"''", "no-such-file"}) {
    expect_run(std::string("serve " MRROPE_TINY_MODEL " --port 0 --dry-run --api-key-file ") + name,
               2, {"key"});
  }
  expect_run("serve " MRROPE_TINY_MODEL " --dry-run");
}

TEST(ServeCommand, OriginsAndNamesAreChecked) {
  const std::string serve = "serve " MRROPE_TINY_MODEL " --dry-run ";
  for (const char* bad :
       {"--cors ''", "--cors localhost:3000", "--cors http://", "--cors http://localhost:3000/",
        "--cors http://a,http://b", "--alias ''"}) {
    expect_run(serve + bad, 2, {std::string(bad).substr(0, 6)});
  }
  for (const char* good : {"--cors '*'", "--cors https://app.example", "--alias gpt --any-model"}) {
    expect_run(serve + good);
  }
}

TEST(ServeCommand, TheLogIsTextOrJson) {
  const std::string serve = "serve " MRROPE_TINY_MODEL " --dry-run --log-format ";
  expect_run(serve + "json");
  expect_run(serve + "xml", 2, {"--log-format", "text", "json"});
}

TEST(ServeCommand, ADryRunThatDoesNotFitFails) {
  expect_run("serve " MRROPE_TINY_MODEL " --dry-run --ctx 512m --method pro --parallel 2", 1,
             {"KV cache", "does not fit"});
}

TEST(ServeCommand, FlagsThatExcludeEachOtherAreNamed) {
  const std::string serve = "serve " MRROPE_TINY_MODEL " --dry-run --ctx 4k --parallel 3 ";
  for (const char* bad : {"--slot-save-path no-such-folder", "--slot-save-path ''",
                          "--slot-save-path /tmp --kv-unified", "--deterministic --kv-unified"}) {
    expect_run(serve + bad, 2, {std::string(bad).substr(0, 10)});
  }
  expect_run(serve, 0, {"3 conversations of 4096 tokens each"});
  expect_run(serve + "--kv-unified", 0, {"3 conversations of 4096 tokens together"});
  expect_run("serve " MRROPE_TINY_MODEL " --dry-run --ctx 4k --parallel 1 --embeddings", 0,
             {"1 conversation of 4096 tokens each"});
  for (const char* good : {"--pooling mean", "--slot-save-path /tmp --deterministic",
                           "--no-kv-unified", "--slot-save-path /tmp --kv-unified --method pro"}) {
    expect_run(serve + good);
  }
}

}  // namespace
}  // namespace mrrope
