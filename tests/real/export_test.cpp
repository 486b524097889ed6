// SPDX-License-Identifier: Apache-2.0
// mrrope export of real models under pro (Gemma: yarn) at 4 windows, verified in stock libllama.
// The window is set to 410 tokens, so that the verification reads 512 and not 4096, which takes the
// largest model 100 s on two cores.

#include "real/models.h"
#include "support/command.h"
#include "support/test.h"

namespace mrrope {
namespace {

using RealExport = test::RealModel;

std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

json inspect(const std::filesystem::path& file) {
  return expect_json("inspect --json " + quoted(file));
}

TEST_P(RealExport, IsProvenInStockLlamaCpp) {
  const TempFolder folder;
  const auto out = folder / "long.gguf";
  const json source = inspect(path);
  const std::string architecture = source.at("architecture");
  const std::string command = "export " + quoted(path) + " --train-ctx 410 --scale 4 --json -o " +
                              quoted(out) + " --method ";
  const bool is_gemma = architecture == "gemma3";
  if (is_gemma) {
    expect_run(command + "pro", 3, {"refuses a file with factors", "--method yarn"});
    EXPECT_FALSE(std::filesystem::exists(out));
  }
  const json printed = expect_json(command + (is_gemma ? "yarn" : "pro"));
  const auto& proof = printed.at("proof");
  std::cout << GetParam() << ": " << printed.at("way") << ", " << proof << "\n";
  EXPECT_EQ(printed.at("way"), architecture == "llama"   ? "factors"
                               : architecture == "qwen2" ? "relabelled"
                                                         : "keys");
  EXPECT_EQ(proof.at("tokens"), 512);
  // The same graph gives the same numbers. Another one rounds differently, and activations of 8
  // bits magnify that.
  const auto largest = proof.at("largest").get<double>();
  const auto effect = proof.at("without_plan").get<double>();
  if (architecture == "llama") {
    EXPECT_LT(largest, 1e-4);
    EXPECT_GT(effect, 0.5);
  } else {
    EXPECT_LT(2 * largest, effect);
  }
  // Rounding in the largest one is close to the limit on a text so short.
  if (std::string(GetParam()) != "qwen2.5-coder-1.5b") {
    EXPECT_EQ(proof.at("conclusive"), true);
  }

  const json exported = inspect(out);
  for (const char* fact : {"embedding", "layers", "layer_kinds", "heads", "kv_heads", "key_length",
                           "value_length", "vocabulary", "sliding_window"}) {
    EXPECT_EQ(exported.at(fact), source.at(fact)) << fact;
  }
  EXPECT_EQ(printed.at("context_length"), 4 * 410);
}

MRROPE_REAL_MODELS(RealExport, testing::ValuesIn(test::kRealModels));

}  // namespace
}  // namespace mrrope
