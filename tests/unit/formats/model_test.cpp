// SPDX-License-Identifier: Apache-2.0
#include "mrrope/model.h"

#include "core/methods.h"
#include "formats/facts.h"
#include "formats/plan_file.h"
#include "models/gguf_writer.h"
#include "mrrope/plan.h"
#include "support/test.h"

namespace mrrope {
namespace {

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

TEST_F(HuggingFaceModel, RotatingOnlyInWindowsIsRefused) {
  const auto config = folder_.write("config.json", R"({"model_type": "cohere2",
      "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
      "num_key_value_heads": 2, "max_position_embeddings": 8192, "rope_theta": 50000,
      "sliding_window": 512, "vocab_size": 32})");
  EXPECT_ERROR(read_model(config), unsupported, "cohere2", "512");
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

GgufWriter phi3(std::vector<float> longer) {
  const LlamaKeys keys{
      .architecture = "phi3", .context = 131072, .layers = 1, .heads = 8, .rotary_dim = 8};
  return llama_gguf(keys)
      .u32("phi3.rope.scaling.original_context_length", 4096)
      .f32("phi3.rope.scaling.attn_factor", 1.1902380714f)
      .u32("phi3.attention.sliding_window", 0)
      .floats("rope_factors_long.weight", std::move(longer))
      .floats("rope_factors_short.weight", {1, 1.25f, 1.5f, 1.75f});
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
  EXPECT_TRUE(contains(error.hint(), "m.gguf"));
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
