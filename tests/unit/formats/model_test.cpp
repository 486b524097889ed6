// SPDX-License-Identifier: Apache-2.0
#include "mrrope/model.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/methods.h"
#include "formats/facts.h"
#include "formats/plan_file.h"
#include "mrrope/plan.h"
#include "support/expect_error.h"
#include "support/gguf_writer.h"
#include "support/temp_folder.h"

namespace mrrope {
namespace {

using test::GgufWriter;
using test::llama_gguf;
using test::LlamaKeys;
using test::TempFolder;

class ModelTest : public testing::Test {
 protected:
  Model read(const GgufWriter& writer, bool replace_scaling = false) const {
    return read_model(folder_.write("x.gguf", writer.bytes()), replace_scaling);
  }
  TempFolder folder_;
};

using GgufModel = ModelTest;
using HuggingFaceModel = ModelTest;
using KvBytes = ModelTest;

std::string kinds(const Model& m) {
  std::string out;
  for (const Layer& layer : m.layers) out += "fwur"[static_cast<int>(layer.kind)];
  return out;
}

TEST_F(HuggingFaceModel, RotatingOnlyInWindowsIsRefused) {
  const auto config = folder_.write("config.json", R"({"model_type": "cohere2",
      "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
      "num_key_value_heads": 2, "max_position_embeddings": 8192, "rope_theta": 50000,
      "sliding_window": 512, "vocab_size": 32})");
  EXPECT_ERROR(read_model(config), unsupported, "cohere2", "512");
}

TEST_F(GgufModel, SmallLlama) {
  const Model m = read(llama_gguf().floats("a", {1, 2}));
  EXPECT_EQ(m.format, "gguf");
  EXPECT_EQ(m.name, "Small Llama");
  EXPECT_EQ(m.architecture, "llama");
  EXPECT_EQ(m.embedding, 64);
  EXPECT_EQ(m.heads, 4);
  EXPECT_EQ(m.kv_heads, 2);
  EXPECT_EQ(m.key_length, 16);
  EXPECT_EQ(m.value_length, 16);
  EXPECT_EQ(m.vocabulary, 3);
  EXPECT_EQ(m.geometry, (Geometry{.rotary_dim = 16,
                                  .base = 10000,
                                  .train_length = 4096,
                                  .pairing = Pairing::interleaved,
                                  .trained_factor = {},
                                  .trained_attention_scale = 1}));
  EXPECT_EQ(m.scaling.type, "none");
  EXPECT_EQ(m.weight_bytes, 8u);
  EXPECT_EQ(m.files.size(), 1u);
  EXPECT_EQ(kinds(m), "ff");
}

TEST_F(GgufModel, RefusesEveryTruncation) {
  const std::string bytes =
      llama_gguf().floats("rope_freqs.weight", {1, 1, 1, 1, 2, 2, 8, 8}).bytes();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_ERROR(read_model(folder_.write("x.gguf", bytes.substr(0, n))), corrupt, "x.gguf");
  }
}

TEST_F(GgufModel, RefusesImpossibleNumbers) {
  const auto refused = [&](const LlamaKeys& keys, const std::string& key, const std::string& text) {
    EXPECT_ERROR(read(llama_gguf(keys)), corrupt, "llama." + key, text);
  };
  refused({.context = 0}, "context_length", "0");
  refused({.context = 0xffffffff}, "context_length", "4294967295");
  refused({.embedding = 0}, "embedding_length", "0");
  refused({.layers = 0}, "block_count", "0");
  refused({.layers = 0xffffffff}, "block_count", "4294967295");
  refused({.heads = 0}, "attention.head_count", "0");
  refused({.heads = 65}, "attention.head_count", "65");
  refused({.rotary_dim = 0}, "rope.dimension_count", "0");
  refused({.rotary_dim = 15}, "rope.dimension_count", "15");
  refused({.rotary_dim = 18}, "rope.dimension_count", "18");
  refused({.rotary_dim = 0x7ffffffe}, "rope.dimension_count", "2147483646");
  refused({.base = 0}, "rope.freq_base", "0");
  refused({.base = -10000}, "rope.freq_base", "-10000");
  refused({.base = 1}, "rope.freq_base", "1");
  refused({.base = std::nanf("")}, "rope.freq_base", "nan");
  refused({.base = std::numeric_limits<float>::infinity()}, "rope.freq_base", "inf");
  refused({.base = 1e38f}, "rope.freq_base", "e+3");
}

TEST_F(GgufModel, RefusesMissingKeysAndWrongTypes) {
  EXPECT_ERROR(read(GgufWriter().u32("a", 1)), corrupt, "general.architecture");
  EXPECT_ERROR(read(GgufWriter().text("general.architecture", "llama")), corrupt,
               "llama.context_length");
  EXPECT_ERROR(read(GgufWriter().u32("general.architecture", 3)), corrupt, "general.architecture",
               "u32");
  EXPECT_ERROR(
      read(GgufWriter().text("general.architecture", "llama").text("llama.context_length", "4096")),
      corrupt, "llama.context_length", "string");
}

TEST_F(GgufModel, RefusesWhatCannotBeExtended) {
  const auto of = [](const char* name) { return GgufWriter().text("general.architecture", name); };
  EXPECT_ERROR(read(of("nonesuch")), unsupported, "nonesuch");
  EXPECT_ERROR(read(of("bloom")), unsupported, "bloom", "ALiBi");
  EXPECT_ERROR(read(of("gpt2")), unsupported, "gpt2", "learned");
  EXPECT_ERROR(read(of("mamba")), unsupported, "mamba");
  EXPECT_ERROR(read(of("\x1b[2J")), unsupported, "\\x1b");
  EXPECT_ERROR(read(llama_gguf().text("general.type", "adapter")), unsupported, "adapter");
}

TEST_F(GgufModel, RecognisesLlama3sFactors) {
  const Geometry bare{128, 500000, 8192, Pairing::interleaved, {}, 1};
  const Plan plan = make_plan(bare, {.method = "llama3", .scale = 8});
  const LlamaKeys keys{.context = 131072, .embedding = 512, .rotary_dim = 128, .base = 500000};
  const GgufWriter w =
      llama_gguf(keys).floats("rope_freqs.weight", {plan.factor().begin(), plan.factor().end()});
  const Model m = read(w);
  EXPECT_EQ(m.scaling.type, "llama3");
  EXPECT_EQ(m.scaling.factor, 8);
  EXPECT_EQ(m.scaling.original_length, 8192);
  EXPECT_TRUE(m.scaling.trained);
  EXPECT_EQ(m.geometry.train_length, 131072);
  ASSERT_EQ(m.geometry.trained_factor.size(), 64u);
  EXPECT_NEAR(m.geometry.trained_factor[32], plan.factor()[32], 1e-6);
  const Model replaced = read(w, true);
  EXPECT_EQ(replaced.geometry, bare);
  EXPECT_FALSE(replaced.scaling.trained);
}

TEST_F(GgufModel, KeepsAListItDoesNotRecognise) {
  const GgufWriter w =
      llama_gguf().floats("rope_freqs.weight", {1, 1.5f, 2, 2.5f, 3, 3.5f, 4, 4.5f});
  const Model m = read(w);
  EXPECT_EQ(m.scaling.type, "rope_freqs");
  EXPECT_EQ(m.geometry.trained_factor[7], 4.5);
  EXPECT_EQ(m.scaling.long_factor.size(), 8u);
  EXPECT_ERROR(read(w, true), usage, "x.gguf", "window");
  // All ones change nothing.
  EXPECT_TRUE(read(llama_gguf().floats("rope_freqs.weight", std::vector<float>(8, 1.0f)))
                  .geometry.trained_factor.empty());
}

TEST_F(GgufModel, RefusesImpossibleFactors) {
  const auto refused = [&](float value, const std::string& text) {
    EXPECT_ERROR(read(llama_gguf().floats("rope_freqs.weight", {1, 1, 1, value, 1, 1, 1, 1})),
                 corrupt, "rope_freqs.weight[3]", text);
  };
  refused(std::nanf(""), "nan");
  refused(std::numeric_limits<float>::infinity(), "inf");
  refused(0, "0");
  refused(-2, "-2");
  EXPECT_ERROR(read(llama_gguf().floats("rope_freqs.weight", {1, 2, 3})), corrupt,
               "rope_freqs.weight", "3 entries", "8 pairs");
}

TEST_F(GgufModel, LinearDividesEveryPair) {
  const auto linear = [] {
    return llama_gguf()
        .text("llama.rope.scaling.type", "linear")
        .f32("llama.rope.scaling.factor", 8);
  };
  const Model m = read(linear());
  EXPECT_EQ(m.geometry.trained_factor, std::vector<double>(8, 8.0));
  EXPECT_EQ(m.geometry.train_length, 4096);
  EXPECT_EQ(read(linear(), true).geometry.train_length, 512);
  EXPECT_EQ(read(llama_gguf().f32("llama.rope.scale_linear", 2)).scaling.type, "linear");
  // None means none, whatever the factor says; a factor of 0 is none too.
  EXPECT_EQ(
      read(llama_gguf().text("llama.rope.scaling.type", "none").f32("llama.rope.scaling.factor", 8))
          .scaling.type,
      "none");
  EXPECT_EQ(read(llama_gguf().f32("llama.rope.scaling.factor", 0)).scaling.type, "none");
}

TEST_F(GgufModel, YarnOverItsOriginalWindow) {
  const auto yarn = [](std::uint32_t context) {
    return llama_gguf({.context = context})
        .text("llama.rope.scaling.type", "yarn")
        .f32("llama.rope.scaling.factor", 4)
        .u32("llama.rope.scaling.original_context_length", 4096);
  };
  const Plan plan = make_plan(read(llama_gguf()).geometry, {.method = "yarn", .scale = 4});
  for (const std::uint32_t context : {4096u, 16384u}) {
    const Model m = read(yarn(context));
    EXPECT_EQ(m.geometry.train_length, 16384);
    EXPECT_TRUE(m.scaling.trained);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_NEAR(m.geometry.trained_factor[i] / plan.factor()[i], 1, 1e-14);
    }
    EXPECT_NEAR(m.geometry.trained_attention_scale, plan.attention_scale(), 1e-14);
    EXPECT_EQ(read(yarn(context), true).geometry.train_length, 4096);
  }
  EXPECT_NEAR(
      read(yarn(4096).f32("llama.rope.scaling.attn_factor", 2)).geometry.trained_attention_scale,
      2 * plan.attention_scale(), 1e-14);
}

TEST_F(GgufModel, YarnKeysThatFewArchitecturesRead) {
  const auto yarn = [](const std::string& name, const std::string& key, float value) {
    return llama_gguf({.architecture = name})
        .text(name + ".rope.scaling.type", "yarn")
        .f32(name + ".rope.scaling.factor", 4)
        .f32(name + ".rope.scaling." + key, value);
  };
  const auto factors = [&](const GgufWriter& file) { return read(file).geometry.trained_factor; };
  EXPECT_EQ(factors(yarn("grok", "yarn_ext_factor", 0)), std::vector<double>(8, 4.0));
  EXPECT_NE(factors(yarn("mistral3", "yarn_ext_factor", 0)), std::vector<double>(8, 4.0));
  const std::vector<double> usual = factors(yarn("llama", "yarn_beta_fast", 32));
  EXPECT_EQ(factors(yarn("llama", "yarn_beta_fast", 8)), usual);
  for (const char* name : {"grok", "mistral3"}) {
    EXPECT_NE(factors(yarn(name, "yarn_beta_fast", 8)), usual);
  }
}

TEST_F(GgufModel, RefusesImpossibleScaling) {
  EXPECT_ERROR(read(llama_gguf().text("llama.rope.scaling.type", "mrrope")), corrupt,
               "llama.rope.scaling.type", "mrrope");
  for (const float factor : {0.5f, -4.0f, 1e9f, std::nanf("")}) {
    EXPECT_ERROR(read(llama_gguf().f32("llama.rope.scaling.factor", factor)), corrupt,
                 "llama.rope.scaling.factor");
  }
  EXPECT_ERROR(read(llama_gguf().f32("llama.rope.scaling.attn_factor", 0)), corrupt,
               "llama.rope.scaling.attn_factor", "0");
  const auto yarn = [] {
    return llama_gguf().text("llama.rope.scaling.type", "yarn").f32("llama.rope.scaling.factor", 4);
  };
  const auto mistral = [] {
    return llama_gguf({.architecture = "mistral3"})
        .text("mistral3.rope.scaling.type", "yarn")
        .f32("mistral3.rope.scaling.factor", 4);
  };
  EXPECT_ERROR(read(mistral().f32("mistral3.rope.scaling.yarn_beta_fast", 0.5f)), corrupt,
               "beta_fast", "0.5");
  EXPECT_ERROR(read(mistral().f32("mistral3.rope.scaling.yarn_beta_slow", std::nanf(""))), corrupt,
               "beta_slow", "nan");
  EXPECT_ERROR(read(yarn().u32("llama.rope.scaling.original_context_length", 0)), corrupt,
               "original_context_length", "0");
}

GgufWriter phi3(std::vector<float> longer, std::uint32_t original = 4096) {
  const LlamaKeys keys{
      .architecture = "phi3", .context = 131072, .layers = 1, .heads = 8, .rotary_dim = 8};
  GgufWriter file = llama_gguf(keys);
  if (original > 0) file.u32("phi3.rope.scaling.original_context_length", original);
  return file.f32("phi3.rope.scaling.attn_factor", 1.1902380714f)
      .u32("phi3.attention.sliding_window", 0)
      .floats("rope_factors_long.weight", std::move(longer))
      .floats("rope_factors_short.weight", {1, 1.25f, 1.5f, 1.75f});
}

TEST_F(GgufModel, LongropeIsItsShortListInsideTheOriginalWindow) {
  const Model m = read(phi3({1, 8, 16, 32}));
  EXPECT_EQ(m.scaling.type, "longrope");
  EXPECT_EQ(m.scaling.factor, 32);
  EXPECT_EQ(m.geometry.train_length, 4096);
  EXPECT_EQ(m.geometry.trained_factor, (std::vector<double>{1, 1.25, 1.5, 1.75}));
  EXPECT_EQ(m.scaling.long_factor.back(), 32);
  EXPECT_EQ(m.geometry.long_factor, (std::vector<double>{1, 8, 16, 32}));
  EXPECT_EQ(m.geometry.long_length, 131072);
  EXPECT_NEAR(m.geometry.trained_attention_scale, 1.1902380714, 1e-7);
  EXPECT_EQ(m.geometry.pairing, Pairing::halves);
  EXPECT_EQ(read(phi3({1, 1.25f, 1.5f, 1.75f})).geometry.train_length, 131072);
  EXPECT_TRUE(read(phi3({1, 1.25f, 1.5f, 1.75f})).geometry.long_factor.empty());
  EXPECT_ERROR(read(phi3({1, 8, 16})), corrupt, "rope_factors_long.weight", "3 entries");
  EXPECT_ERROR(read(phi3({1, 8, 16, -1})), corrupt, "rope_factors_long.weight[3]", "-1");
  EXPECT_ERROR(read(phi3({1, 8, 0, 32})), corrupt, "rope_factors_long.weight[2]", "0");
  EXPECT_ERROR(read(phi3({1, std::nanf(""), 16, 32})), corrupt, "long.weight[1]", "nan");
}

TEST_F(GgufModel, ALongListNeedsTheWindowThatItFollows) {
  // Without it the window is the declared one, as in llama.cpp, and nothing is known beyond it.
  const Model m = read(phi3({1, 8, 16, 32}, 0));
  EXPECT_EQ(m.geometry.train_length, 131072);
  EXPECT_TRUE(m.geometry.long_factor.empty());
  EXPECT_ERROR(make_ladder(m.geometry, parse_method("elastic:vendor"), 262144), usage,
               "the window of the first", "131072");
  EXPECT_TRUE(read(phi3({1, 8, 16, 32}, 131072)).geometry.long_factor.empty());
  EXPECT_ERROR(read(phi3({1, 8, 16, 32}, 1U << 31U)), corrupt, "original_context_length");
}

TEST_F(GgufModel, PlanFilesKeepTheLongList) {
  const Model m = read(phi3({1, 8, 16, 32}));
  const Ladder ladder = make_ladder(m.geometry, parse_method("auto"), 65536);
  const nlohmann::json file = to_json(ladder);
  EXPECT_EQ(file.at("method"), "elastic:vendor");
  const Ladder back = ladder_from_json(file);
  EXPECT_EQ(back.rungs().size(), 2u);
  EXPECT_EQ(back.rungs()[1].plan.geometry(), m.geometry);
  EXPECT_EQ(ladder_digest(back), ladder_digest(ladder));
  check_made_for(back.rungs()[0].plan.geometry(), m);
  nlohmann::json broken = file;
  broken["geometry"]["long_factor"][1] = 0;
  EXPECT_ERROR(ladder_from_json(broken), corrupt, "long factor of pair 1");
  broken = file;
  broken["geometry"].erase("long_length");
  EXPECT_ERROR(ladder_from_json(broken), corrupt, "long factors reach 0");
  broken["geometry"].erase("long_factor");
  EXPECT_ERROR(ladder_from_json(broken), corrupt, "two lists of factors");
  // A plan of an earlier version does not hold the list.
  nlohmann::json older = to_json(make_ladder(m.geometry, parse_method("pro"), 65536));
  older["geometry"].erase("long_length");
  older["geometry"].erase("long_factor");
  check_made_for(ladder_from_json(older).rungs()[0].plan.geometry(), m);
  Geometry other = m.geometry;
  other.long_factor[1] = 9;
  EXPECT_ERROR(check_made_for(other, m), usage, "was made for");
}

TEST_F(GgufModel, WindowedLayersHaveTheirOwnBase) {
  const LlamaKeys keys{
      .architecture = "gemma3", .context = 131072, .layers = 7, .rotary_dim = 32, .base = 1e6f};
  const Model m = read(llama_gguf(keys)
                           .u32("gemma3.attention.key_length", 32)
                           .u32("gemma3.attention.value_length", 32)
                           .u32("gemma3.attention.sliding_window", 1024)
                           .f32("gemma3.rope.freq_base_swa", 1e4f)
                           .text("gemma3.rope.scaling.type", "linear")
                           .f32("gemma3.rope.scaling.factor", 8));
  EXPECT_EQ(kinds(m), "wwwwwfw");
  EXPECT_EQ(m.geometry.base, 1e6);
  EXPECT_EQ(m.geometry.rotary_dim, 32);
  EXPECT_EQ(m.geometry.trained_factor.front(), 8);
  // One layer of 131072 tokens, six of 1024.
  EXPECT_EQ(kv_bytes(m, 131072, 16), (131072u + 6 * 1024) * 2 * 64 * 2);
}

TEST_F(GgufModel, DeepSeekCachesOneVectorPerToken) {
  const LlamaKeys keys{.architecture = "deepseek2",
                       .context = 163840,
                       .embedding = 2048,
                       .layers = 27,
                       .heads = 16,
                       .kv_heads = 1,
                       .rotary_dim = 64};
  const Model m = read(llama_gguf(keys)
                           .u32("deepseek2.attention.key_length", 576)
                           .u32("deepseek2.attention.value_length", 512)
                           .u32("deepseek2.attention.key_length_mla", 192)
                           .text("deepseek2.rope.scaling.type", "yarn")
                           .f32("deepseek2.rope.scaling.factor", 40)
                           .u32("deepseek2.rope.scaling.original_context_length", 4096)
                           .f32("deepseek2.rope.scaling.yarn_log_multiplier", 0.0707f));
  EXPECT_TRUE(m.latent_attention);
  EXPECT_EQ(m.geometry.rotary_dim, 64);
  EXPECT_EQ(m.geometry.train_length, 163840);
  EXPECT_EQ(m.geometry.trained_attention_scale, 1);
  EXPECT_EQ(kv_bytes(m, 1000, 16), 27u * 576 * 2 * 1000);
}

TEST_F(GgufModel, SectionsOfSeveralPositions) {
  const GgufWriter w = llama_gguf({.architecture = "qwen2vl"})
                           .array<std::int32_t>("qwen2vl.rope.dimension_sections", 5, {2, 3, 3, 0});
  EXPECT_EQ(read(w).mrope_sections, (std::vector<int>{2, 3, 3, 0}));
  EXPECT_EQ(read(w).geometry.rotary_dim, 16);
}

TEST_F(GgufModel, OpensASplitModelByAnyPart) {
  GgufWriter first = llama_gguf();
  first.u16("split.no", 0).u16("split.count", 2).i32("split.tensors.count", 1);
  GgufWriter second;
  second.u16("split.no", 1).u16("split.count", 2).i32("split.tensors.count", 1).floats("a", {1});
  folder_.write("m-00001-of-00002.gguf", first.bytes());
  const auto path = folder_.write("m-00002-of-00002.gguf", second.bytes());
  const Model m = read_model(path);
  EXPECT_EQ(m.files.size(), 2u);
  EXPECT_EQ(m.weight_bytes, 4u);
  EXPECT_EQ(m.path, path);
  std::filesystem::remove(folder_.path() / "m-00001-of-00002.gguf");
  EXPECT_ERROR(read_model(path), failed, "m-00001-of-00002.gguf");
}

const char* const kConfig = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 4096})";

TEST_F(HuggingFaceModel, OpensByFolderConfigOrWeights) {
  folder_.write("config.json", kConfig);
  const std::string header = R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})";
  const auto weights = folder_.write(
      "model.safetensors", test::le<std::uint64_t>(header.size()) + header + std::string(8, '\0'));
  for (const auto& path : {folder_.path(), folder_.path() / "config.json", weights}) {
    const Model m = read_model(path);
    EXPECT_EQ(m.geometry.rotary_dim, 16);
    EXPECT_EQ(m.weight_bytes, 8u);
    EXPECT_EQ(m.files.size(), 2u);
    EXPECT_EQ(m.path, path);
  }
  // The same model in both formats, but for the order of its pairs.
  Geometry halves = read(llama_gguf()).geometry;
  halves.pairing = Pairing::halves;
  EXPECT_EQ(read_model(folder_.path()).geometry, halves);
  folder_.write("other.json", kConfig);
  EXPECT_EQ(read_model(folder_.path() / "other.json").weight_bytes, 0u);
}

TEST_F(HuggingFaceModel, SaysWhatIsMissingOrBroken) {
  EXPECT_ERROR(read_model(folder_.path()), failed, "config.json");
  EXPECT_ERROR(read_model(folder_.path() / "nowhere"), failed, "nowhere");
  EXPECT_ERROR(read_model(folder_.path() / "config.json"), failed, "config.json");
  folder_.write("config.json", kConfig);
  folder_.write("model.safetensors.index.json", R"({"weight_map": {"x": "../secret"}})");
  EXPECT_ERROR(read_model(folder_.path()), corrupt, "../secret");
  folder_.write("config.json", std::string(2000, '['));
  EXPECT_ERROR(read_model(folder_.path()), corrupt, "levels");
  folder_.write_sparse("config.json", "{", std::uint64_t{1} << 30);
  EXPECT_ERROR(read_model(folder_.path()), corrupt, "1073741824");
  folder_.write("config.json", "{\"model_type\": \"\xff\"}");
  EXPECT_ERROR(read_model(folder_.path()), corrupt, "UTF-8");
}

TEST_F(HuggingFaceModel, PointsToTheRightFile) {
  folder_.write("m.gguf", llama_gguf().bytes());
  const Error error = test::error_of([&] { read_model(folder_.path()); });
  EXPECT_NE(error.hint().find("m.gguf"), std::string::npos);
  EXPECT_ERROR(read_model(folder_.write("pytorch_model.bin", "PK\x03\x04zip")), unsupported,
               "PyTorch");
  EXPECT_ERROR(read_model(folder_.write("empty.gguf", "")), corrupt, "0 bytes");
  EXPECT_ERROR(read_model(folder_.write("four.gguf", "GGUF")), corrupt, "four.gguf");
}

TEST_F(KvBytes, CountsLayersHeadsAndWidth) {
  const Model m = read(llama_gguf());
  EXPECT_EQ(kv_bytes(m, 4096, 16), 4096u * 2 * 2 * 32 * 2);
  EXPECT_EQ(kv_bytes(m, 4096, 8.5), 4096u * 2 * 2 * 32 * 17 / 16);
  EXPECT_EQ(kv_bytes(m, 0, 16), 0u);
  EXPECT_EQ(kv_bytes(m, INT64_MAX, 16), UINT64_MAX);
  EXPECT_ERROR(kv_bytes(m, -1, 16), usage, "-1");
  EXPECT_ERROR(kv_bytes(m, 1, 0), usage, "0");
  EXPECT_ERROR(kv_bytes(m, 1, std::nan("")), usage, "nan");
}

}  // namespace
}  // namespace mrrope
