// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/temp_folder.h"
#include "support/text.h"

namespace mrrope {
namespace {

using test::read_file;
using test::TempFolder;
using test::write_file;

using nlohmann::json;

const std::string kTinyFolder = std::string(MRROPE_GOLDEN_DIR) + "/tiny_config";

using test::contains;

TEST(InspectCommand, ReadsAHuggingFaceFolder) {
  const CommandResult r = run_command("inspect " + kTinyFolder + " --ctx 8k");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  for (const char* part : {"architecture llama", "10 full", "4 query, 2 key-value", "base 10000",
                           "1024 tokens", "scaling         none", "At 8192 tokens",
                           "80.0 MiB in f16", "42.5 MiB in q8_0", "recommended     auto (far:pi): ",
                           "Other engines, with pro at 8192 tokens (auto is", "--method auto"}) {
    EXPECT_TRUE(contains(r.out, part)) << part << "\n" << r.out;
  }
}

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

TEST(InspectCommand, InsideTheWindowNothingNeedsToChange) {
  const CommandResult r = run_command("inspect " + kTinyFolder);
  EXPECT_TRUE(contains(r.out, "auto (none): the wanted length is inside")) << r.out;
}

TEST(InspectCommand, SaysWhatIsWrongWithAFile) {
  const TempFolder folder;
  const auto code = [&](const std::string& name, const std::string& content, const char* message) {
    write_file(folder.file(name), content);
    const CommandResult r = run_command("inspect " + folder.file(name));
    EXPECT_TRUE(contains(r.err, message)) << name << ": " << r.err;
    EXPECT_GE(std::count(r.err.begin(), r.err.end(), '\n'), 2) << "no hint: " << r.err;
    return r.exit_code;
  };
  EXPECT_EQ(run_command("inspect " + folder.file("absent.gguf")).exit_code, 1);
  EXPECT_EQ(run_command("inspect").exit_code, 2);
  EXPECT_EQ(run_command("inspect " + kTinyFolder + " --ctx 0").exit_code, 2);
  EXPECT_EQ(run_command("inspect " + kTinyFolder + " --rotary-dim 4").exit_code, 2);
  EXPECT_EQ(run_command("inspect " + folder.path().string()).exit_code, 1);  // no config.json in it
  EXPECT_EQ(code("empty.gguf", "", "empty.gguf"), 4);
  EXPECT_EQ(code("four.gguf", "GGUF", "four.gguf"), 4);
  EXPECT_EQ(code("config.json", "{}", "model_type"), 4);
  EXPECT_EQ(code("config.json", R"({"model_type": "quantum"})", "quantum"), 3);
  EXPECT_EQ(code("config.json", R"({"model_type": "bloom"})", "ALiBi"), 3);
}

// The tiny model under another name.
std::string tiny_as(const TempFolder& folder, const std::string& name) {
  std::filesystem::copy_file(MRROPE_TINY_MODEL, folder / name);
  return folder.file(name);
}

TEST(InspectCommand, WhatToTypeNextHasQuotesAndTheFlagsOfTheGeometry) {
  const TempFolder folder;
  const std::string path = tiny_as(folder, "a b.gguf");
  const CommandResult r = run_command("inspect '" + path + "' --train-ctx 512 --ctx 4k");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "mrrope plan '" + path + "' --train-ctx 512 --method auto")) << r.out;
  EXPECT_TRUE(contains(r.out, "--ctx 4k --train-ctx 512 --to gguf")) << r.out;
}

TEST(InspectCommand, NamesThatAreNotUtf8) {
  const TempFolder folder;
  const std::string path = tiny_as(folder, "bad\xff.gguf");
  const CommandResult r = run_command("inspect '" + path + "' --ctx 4k --json");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(json::parse(r.out)["layers"], 10);
}

}  // namespace
}  // namespace mrrope
