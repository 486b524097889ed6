// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/command.h"

namespace mrrope {
namespace {

const std::string kTinyFolder = std::string(MRROPE_GOLDEN_DIR) + "/tiny_config";

TEST(InspectCommand, JsonHasTheSameFacts) {
  const json j = json::parse(run_command("inspect --json -m " + kTinyFolder + " --ctx 8k").out);
  EXPECT_EQ(j["architecture"], "llama");
  EXPECT_EQ(j["layers"], 10);
  EXPECT_EQ(j["kv_bytes"]["f16"], 80 << 20);
  EXPECT_EQ(j["scale"], 8);
  EXPECT_EQ(j["geometry"]["pairing"], "halves");
  EXPECT_EQ(j["recommended"]["method"], "auto");
  EXPECT_EQ(j["recommended"]["meaning"], "far:pi");
  EXPECT_FALSE(j.contains("default"));
}

// The tiny model under another name.
std::string tiny_as(const TempFolder& folder, const std::string& name) {
  std::filesystem::copy_file(MRROPE_TINY_MODEL, folder / name);
  return folder.file(name);
}

TEST(InspectCommand, WhatToTypeNextHasQuotesAndTheFlagsOfTheGeometry) {
  const TempFolder folder;
  const std::string path = tiny_as(folder, "a b.gguf");
  expect_run("inspect '" + path + "' --train-ctx 512 --ctx 4k", 0,
             {"mrrope plan '" + path + "' --train-ctx 512 --method auto",
              "--ctx 4k --train-ctx 512 --to gguf"});
}

TEST(InspectCommand, NamesThatAreNotUtf8) {
  const TempFolder folder;
  const std::string path = tiny_as(folder, "bad\xff.gguf");
  const CommandResult r = expect_run("inspect '" + path + "' --ctx 4k --json");
  EXPECT_EQ(json::parse(r.out)["layers"], 10);
}

}  // namespace
}  // namespace mrrope
