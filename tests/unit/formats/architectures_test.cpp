// SPDX-License-Identifier: Apache-2.0
#include "formats/architectures.h"

#include "support/test.h"

namespace mrrope {
namespace {

const Architecture& named(std::string_view name) {
  const Architecture* row = find_architecture(name);
  if (row == nullptr) throw Error(ErrorKind::failed, "no row " + std::string(name));
  return *row;
}

TEST(Architectures, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const Architecture& row : architectures()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  EXPECT_EQ(names.size(), 153u);
}

TEST(Architectures, HuggingFaceNamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const Architecture& row : architectures()) {
    std::istringstream words{std::string(row.huggingface)};
    for (std::string word; words >> word;) {
      EXPECT_TRUE(names.insert(word).second) << word;
      EXPECT_EQ(find_huggingface(word), &row) << word;
    }
  }
}

TEST(Architectures, UnknownNamesAreNotFound) {
  EXPECT_EQ(find_architecture("qwen"), &named("qwen"));
  EXPECT_EQ(find_architecture("qwe"), nullptr);
  EXPECT_EQ(find_architecture(""), nullptr);
  EXPECT_EQ(find_huggingface("qwen2_"), nullptr);
  EXPECT_EQ(find_huggingface("qwen2 kormo"), nullptr);
  EXPECT_EQ(find_huggingface(""), nullptr);
}

TEST(Architectures, MropeSectionsForceHalves) {
  EXPECT_EQ(gguf_pairing(named("glm4"), true), Pairing::halves);
  EXPECT_EQ(gguf_pairing(named("glm4"), false), Pairing::interleaved);
  EXPECT_EQ(gguf_pairing(named("llama"), true), Pairing::interleaved);
  EXPECT_TRUE(named("qwen2vl").has(Trait::mrope));
  EXPECT_FALSE(named("qwen2").has(Trait::mrope));
}

TEST(LayersOf, EverySupportedRowTakesAPlan) {
  for (const Architecture& row : architectures()) {
    if (!row.unsupported.empty()) continue;
    LayerKeys keys;
    keys.layers = row.layers.rotates_at_depth != 0 ? row.layers.rotates_at_depth : 48;
    keys.kv_heads = {4};
    for (int i = 0; i < keys.layers; ++i) keys.windowed.push_back(i % 2 == 0);
    const std::vector<Layer> layers = layers_of(row, keys);
    EXPECT_TRUE(std::any_of(layers.begin(), layers.end(), [](const Layer& layer) {
      return layer.kind == LayerKind::full && layer.rotations > 0;
    })) << row.name;
  }
}

}  // namespace
}  // namespace mrrope
