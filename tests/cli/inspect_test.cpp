// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/command.h"
#include "support/gguf_writer.h"

namespace mrrope {
namespace {

// A small Phi-3 without weights.
std::string two_lists(const TempFolder& folder) {
  return folder
      .write(
          "phi.gguf",
          test::llama_gguf(
              {.architecture = "phi3", .context = 131072, .layers = 1, .heads = 8, .rotary_dim = 8})
              .u32("phi3.rope.scaling.original_context_length", 4096)
              .f32("phi3.rope.scaling.attn_factor", 1.19F)
              .u32("phi3.attention.sliding_window", 0)
              .floats("rope_factors_long.weight", {1, 8, 16, 32})
              .floats("rope_factors_short.weight", {1, 1.25F, 1.5F, 2})
              .bytes())
      .string();
}

TEST(TwoLists, AreTheDefaultAsFarAsTheyReach) {
  const TempFolder folder;
  const std::string path = two_lists(folder);
  const auto inspected = [&](const char* ctx) {
    return json::parse(run_command("inspect --json " + path + " --ctx " + ctx).out);
  };
  const json j = inspected("128k");
  EXPECT_EQ(j["recommended"]["meaning"], "elastic:vendor");
  EXPECT_EQ(j["geometry"]["long_length"], 131072);
  EXPECT_EQ(j["engines"][0]["commands"][0], "llama-server -m " + path + " -c 131072");
  EXPECT_EQ(inspected("4k")["recommended"]["meaning"], "none");
  EXPECT_EQ(inspected("256k")["recommended"]["meaning"], "far:pi");
  expect_run(
      "inspect " + path + " --ctx 128k", 0,
      {"original window 4096, long list to 131072", "auto (elastic:vendor): the file's short",
       "with vendor at 131072 tokens", "llama.cpp: runs as is", "transformers: runs as is"});
  expect_run("inspect " + path + " --ctx 256k", 0, {"up to 131072 tokens the file has a list"});

  // Plan files hold the ladder, for any verb.
  const std::string plan = folder.file("plan.json");
  expect_run("plan " + path + " --method auto --ctx 128k -o " + plan, 0);
  EXPECT_EQ(json::parse(read_file(plan))["method"], "elastic:vendor");
  expect_run("plan --plan " + plan, 0, {"the file's own long list, scale 32", "2 rungs"});
  expect_run("plan " + path + " --method vendor,elastic:vendor --ctx 128k", 0,
             {"the file's own long list, scale 32"});
}

TEST(TwoLists, AreRefusedByNameElsewhere) {
  const TempFolder folder;
  const std::string path = two_lists(folder);
  expect_run("plan " + path + " --method elastic:vendor --ctx 256k", 2,
             {"made for 131072 tokens, not for 262144", "--method far:pi"});
  expect_run("plan " + path + " --method far:vendor --ctx 128k", 2, {"far:vendor is not possible"});
  expect_run("plan " + path + " --replace-scaling --method elastic:vendor --ctx 128k", 2,
             {"two lists of factors", "--method auto"});
  expect_run("plan " MRROPE_TINY_MODEL " --method elastic:vendor --ctx 8k", 2,
             {"two lists of factors", "window of 1024", "--method auto"});
  for (const char* method :
       {"auto", "vendor", "elastic:vendor", "'elastic:vendor' --approximate"}) {
    expect_run(
        "export " + path + " --ctx 128k -o " + folder.file("out.gguf") + " --method " + method, 3,
        {"is in the file already", "leave the file as it is"});
  }
  expect_run("export " + path + " --ctx 128k --to commands", 0, {"llama-server -m " + path});
}

}  // namespace
}  // namespace mrrope
