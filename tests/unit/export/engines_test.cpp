// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/export.h"
#include "support/gguf_writer.h"
#include "support/temp_folder.h"
#include "support/text.h"

namespace mrrope::exporting {
namespace {

using test::llama_gguf;
using test::TempFolder;

// Advice for a GGUF of this architecture, by engine.
std::map<std::string, EngineAdvice> advice_for(const std::string& architecture,
                                               const std::string& method, double scale = 4,
                                               double attn_coef = -1) {
  const TempFolder folder;
  const auto file =
      folder.write("small-model.gguf", llama_gguf({.architecture = architecture}).bytes());
  const Model model = read_model(file);
  const Gguf gguf = read_gguf(file);
  Extension extension{.method = method, .scale = scale};
  if (attn_coef >= 0) extension.parameters.attn_coef = attn_coef;
  const Plan plan = make_plan(model.geometry, extension);
  const auto length = static_cast<std::int64_t>(4096 * scale);
  std::map<std::string, EngineAdvice> out;
  for (EngineAdvice& a : engine_advice({model, &gguf, plan, length, "--method " + method})) {
    out[a.engine] = std::move(a);
  }
  return out;
}

using test::contains;

TEST(Engines, InsideTheWindowNoFlagsAreNeeded) {
  for (const auto& [engine, a] : advice_for("llama", "none", 1)) {
    EXPECT_EQ(a.verdict, Advice::as_is) << engine;
    EXPECT_TRUE(a.why.empty());
    EXPECT_FALSE(contains(a.commands.front(), "--rope")) << a.commands.front();
  }
}

TEST(Engines, UsesFlagsForMethodsThatLlamaCppKnows) {
  const EngineAdvice pi = advice_for("llama", "pi").at("llama.cpp");
  EXPECT_EQ(pi.verdict, Advice::as_is);
  EXPECT_TRUE(contains(pi.commands[0], "llama-server -m "));
  EXPECT_TRUE(contains(pi.commands[0], " -c 16384 --rope-scaling linear --rope-scale 4 "));
  EXPECT_TRUE(contains(pi.commands[0], "--override-kv llama.context_length=int:16384"));
  EXPECT_FALSE(contains(pi.commands[0], "attn_factor"));
  EXPECT_TRUE(contains(pi.commands[1], "llama-cli -m "));
  const std::string yarn = advice_for("qwen3", "yarn").at("llama.cpp").commands[0];
  EXPECT_TRUE(contains(yarn, "--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 4096 "));
  EXPECT_FALSE(contains(yarn, "attn_factor"));
  // Under YaRN llama.cpp reads no --yarn-attn-factor: the key does it, over YaRN's own.
  const std::string cooler = advice_for("qwen3", "yarn", 4, 0).at("llama.cpp").commands[0];
  EXPECT_TRUE(contains(cooler, "qwen3.rope.scaling.attn_factor=float:0.878248"));
  const std::string ntk = advice_for("qwen3", "ntk").at("llama.cpp").commands[0];
  EXPECT_TRUE(contains(ntk, "--rope-freq-base 48760.5")) << ntk;
}

TEST(Engines, NeedsAFileIfOneCanHoldThePlan) {
  for (const char* architecture : {"llama", "qwen2"}) {
    const EngineAdvice a = advice_for(architecture, "pro").at("llama.cpp");
    EXPECT_EQ(a.verdict, Advice::needs_file);
    EXPECT_TRUE(contains(a.commands[0], "--method pro --to gguf -o small-model-16k.gguf"));
    EXPECT_TRUE(contains(a.commands[1], "llama-server -m small-model-16k.gguf -c 16384"));
  }
  // ollama passes no flags on.
  const EngineAdvice ollama = advice_for("llama", "pi").at("ollama");
  EXPECT_EQ(ollama.verdict, Advice::needs_file);
  EXPECT_TRUE(contains(ollama.commands[1], "num_ctx 16384"));
  EXPECT_TRUE(contains(ollama.commands[1], "./small-model-16k.gguf"));
}

TEST(Engines, SaysWhyAnEngineCannot) {
  const auto advice = advice_for("qwen3", "pro");
  EXPECT_EQ(advice.at("llama.cpp").verdict, Advice::cannot);
  EXPECT_TRUE(contains(advice.at("llama.cpp").why, "refuses a file with factors"));
  EXPECT_TRUE(contains(advice.at("llama.cpp").commands.at(0), "mrrope generate"));
  EXPECT_EQ(advice.at("ollama").verdict, Advice::cannot);
  EXPECT_EQ(advice.at("vLLM").verdict, Advice::as_is);
  // Interleaved in the checkpoint too, which the longrope of vLLM and SGLang does not do. vLLM has
  // our plugin.
  const auto cohere = advice_for("command-r", "pro");
  EXPECT_EQ(cohere.at("vLLM").verdict, Advice::needs_file);
  EXPECT_TRUE(contains(cohere.at("vLLM").commands.at(0), "--to hf-mrrope -o"));
  EXPECT_TRUE(contains(cohere.at("vLLM").commands.at(1), "pip install"));
  EXPECT_EQ(cohere.at("SGLang").verdict, Advice::cannot);
  EXPECT_EQ(cohere.at("transformers").verdict, Advice::as_is);
}

// Overrides reach the outermost level only, and know one kind of layer.
TEST(Engines, NeedsAFolderIfOverridesAreNotEnough) {
  const TempFolder folder;
  const nlohmann::json text = {{"model_type", "llama"},    {"hidden_size", 512},
                               {"num_attention_heads", 4}, {"num_hidden_layers", 2},
                               {"num_key_value_heads", 2}, {"max_position_embeddings", 1024},
                               {"rope_theta", 10000.0},    {"vocab_size", 64}};
  const auto advice = [&](const nlohmann::json& config) {
    folder.write("model/config.json", config.dump());
    const Model model = read_model(folder / "model");
    Extension pro{.method = "pro", .scale = 4};
    const Plan plan = make_plan(model.geometry, pro);
    return engine_advice({model, nullptr, plan, 4096, "--method pro --ctx 4k"});
  };
  const auto plain = advice(text);
  EXPECT_EQ(plain[2].verdict, Advice::as_is);
  EXPECT_EQ(plain[3].verdict, Advice::as_is);
  const auto nested = advice({{"model_type", "llava"}, {"text_config", text}});
  for (const std::size_t i : {2u, 3u, 4u}) {
    EXPECT_EQ(nested[i].verdict, Advice::needs_file) << nested[i].engine;
    EXPECT_TRUE(contains(nested[i].why, "text_config"));
    EXPECT_TRUE(contains(nested[i].commands[0], "--to hf -o model-4k"));
    EXPECT_TRUE(contains(nested[i].commands[1], "model-4k"));
  }
  EXPECT_TRUE(contains(nested[0].commands[0], "convert_hf_to_gguf.py"));
}

// llama.cpp reads no factors for qwen3, but has keys for YaRN.
TEST(Engines, ACheckpointIsConvertedFirst) {
  const TempFolder folder;
  const nlohmann::json config = {
      {"model_type", "qwen3"},    {"hidden_size", 512},
      {"num_attention_heads", 4}, {"num_hidden_layers", 2},
      {"num_key_value_heads", 2}, {"max_position_embeddings", 1024},
      {"rope_theta", 10000.0},    {"vocab_size", 64},
      {"head_dim", 128},          {"architectures", {"Qwen3ForCausalLM"}}};
  folder.write("model/config.json", config.dump());
  const Model model = read_model(folder / "model");
  const auto advice = [&](const std::string& method, std::int64_t length) {
    const Plan plan = make_plan(model.geometry, {.method = method, .scale = double(length) / 1024});
    return engine_advice({model, nullptr, plan, length, "--method " + method});
  };
  const std::string convert = "python convert_hf_to_gguf.py " + folder.file("model");
  const auto yarn = advice("yarn", 4096);
  for (const std::size_t i : {0u, 1u}) {  // llama.cpp, ollama
    ASSERT_EQ(yarn[i].verdict, Advice::needs_file) << yarn[i].why;
    EXPECT_EQ(yarn[i].commands.at(0), convert + " --outfile model.gguf");
    EXPECT_EQ(yarn[i].commands.at(1),
              "mrrope export model.gguf --method yarn --to gguf -o model-4k.gguf");
  }
  EXPECT_EQ(advice("pro", 4096)[0].verdict, Advice::cannot);
  EXPECT_EQ(advice("none", 1024)[0].commands.at(0), convert + " --outfile model-1k.gguf");
}

TEST(Engines, OverridesAreShellQuotedJson) {
  const auto advice = advice_for("llama", "pro");
  const std::string vllm = advice.at("vLLM").commands.at(0);
  const std::size_t start = vllm.find('\'');
  ASSERT_NE(start, std::string::npos);
  ASSERT_EQ(vllm.back(), '\'');
  const auto json = nlohmann::json::parse(vllm.substr(start + 1, vllm.size() - start - 2));
  EXPECT_EQ(json["max_position_embeddings"], 16384);
  EXPECT_EQ(json["rope_parameters"]["original_max_position_embeddings"], 4096);
  EXPECT_EQ(json["rope_parameters"]["long_factor"].size(), 8u);
  EXPECT_TRUE(contains(vllm, "--hf-overrides '"));
  EXPECT_TRUE(contains(advice.at("SGLang").commands.at(0), "--json-model-override-args '"));
  EXPECT_TRUE(
      contains(advice.at("SGLang").commands.at(0), "\"original_max_position_embeddings\":16384"));
  EXPECT_TRUE(contains(advice.at("transformers").commands.at(0),
                       "max_position_embeddings=16384, rope_parameters={\"rope_type\":"));
}

}  // namespace
}  // namespace mrrope::exporting
