// SPDX-License-Identifier: Apache-2.0
#include "formats/architectures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "mrrope/error.h"
#include "support/expect_error.h"

namespace mrrope {
namespace {

const Architecture& named(std::string_view name) {
  const Architecture* row = find_architecture(name);
  if (row == nullptr) throw Error(ErrorKind::failed, "no row " + std::string(name));
  return *row;
}

LayerKeys keys_of(int layers, int kv_heads = 4) {
  LayerKeys keys;
  keys.layers = layers;
  keys.kv_heads = {kv_heads};
  return keys;
}

// One letter per layer: full, windowed, unrotated, recurrent; a capital keeps a short cache.
std::string kinds(std::string_view name, const LayerKeys& keys) {
  std::string text;
  for (const Layer& layer : layers_of(named(name), keys)) {
    text += (layer.windowed_cache ? "FWUR" : "fwur")[static_cast<int>(layer.kind)];
  }
  return text;
}

void refuses(std::string_view name, const LayerKeys& keys, std::string_view word,
             ErrorKind kind = ErrorKind::unsupported) {
  const Error error = test::error_of([&] { layers_of(named(name), keys); });
  EXPECT_EQ(error.kind(), kind) << name;
  EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
}
void contradicts(std::string_view name, const LayerKeys& keys) {
  refuses(name, keys, name, ErrorKind::corrupt);
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

TEST(Architectures, UnsupportedSaysWhy) {
  refuses("mpt", keys_of(24), "architecture mpt cannot be extended: positions are ALiBi biases");
  for (const char* name : {"gpt2", "mamba", "rwkv7", "bert", "dream", "cogvlm", "deepseek4"}) {
    EXPECT_FALSE(named(name).unsupported.empty()) << name;
    refuses(name, keys_of(24), name);
  }
}

TEST(LayersOf, EveryLayerByDefault) {
  LayerKeys keys = keys_of(3, 8);
  keys.sliding_window = 4096;  // stated by Qwen 2 and Mistral files, used by neither in llama.cpp
  keys.windowed = {true, true, true};
  for (const char* name : {"llama", "qwen2", "mistral3", "phi3", "deepseek2"}) {
    EXPECT_EQ(kinds(name, keys), "fff") << name;
    EXPECT_EQ(window_of(named(name), keys), 0) << name;
  }
  const Layer layer = layers_of(named("llama"), keys)[2];
  EXPECT_EQ(layer.kv_heads, 8);
  EXPECT_EQ(layer.rotations, 2);
}

TEST(LayersOf, GemmaWindows) {
  LayerKeys keys = keys_of(26, 1);
  keys.sliding_window = 512;
  EXPECT_EQ(kinds("gemma3", keys), "WWWWWfWWWWWfWWWWWfWWWWWfWW");
  EXPECT_EQ(window_of(named("gemma3"), keys), 512);
  EXPECT_EQ(layers_of(named("gemma3"), keys)[0].rotations, 0);
  keys.sliding_window = -1;
  EXPECT_EQ(kinds("gemma3", keys), std::string(26, 'f'));

  EXPECT_EQ(kinds("gemma2", keys_of(4)), "WfWf");
  EXPECT_EQ(window_of(named("gemma2"), keys_of(4)), 4096);
}

TEST(LayersOf, PatternInTheFileWins) {
  LayerKeys keys = keys_of(6);
  keys.sliding_window = 128;
  EXPECT_EQ(kinds("gpt-oss", keys), "WfWfWf");
  keys.window_period = 3;
  EXPECT_EQ(kinds("gpt-oss", keys), "WWfWWf");
  keys.window_period = 1;
  EXPECT_EQ(kinds("gpt-oss", keys), "ffffff");
  keys.windowed = {false, true, true, true, true, true};
  EXPECT_EQ(kinds("gpt-oss", keys), "fWWWWW");
}

TEST(LayersOf, LaterGemmasShareKeys) {
  LayerKeys keys = keys_of(30, 2);
  keys.sliding_window = 512;
  const std::vector<Layer> layers = layers_of(named("gemma3n"), keys);
  EXPECT_EQ(layers[19].kind, LayerKind::full);
  EXPECT_EQ(layers[19].rotations, 2);
  EXPECT_EQ(layers[24].kind, LayerKind::full);
  EXPECT_EQ(layers[24].rotations, 1);
  EXPECT_EQ(layers[24].kv_heads, 0);

  keys = keys_of(4, 2);
  keys.windowed = {true, false, true, false};
  keys.shared_kv_layers = 2;
  EXPECT_EQ(kinds("gemma4", keys), "WfWf");
  EXPECT_EQ(layers_of(named("gemma4"), keys)[3].rotations, 1);
}

TEST(LayersOf, Olmo3WindowsKeepTheirScale) {
  LayerKeys keys = keys_of(8);
  EXPECT_EQ(kinds("olmo2", keys), "ffffffff");
  keys.sliding_window = 4096;
  EXPECT_EQ(kinds("olmo2", keys), "WWWfWWWf");
}

TEST(LayersOf, CohereWindowsFollowThePlan) {
  LayerKeys keys = keys_of(8);
  keys.sliding_window = 4096;
  EXPECT_EQ(kinds("cohere2", keys), "FFFuFFFu");
  EXPECT_EQ(kinds("cohere2moe", keys), "uFFFuFFF");
  keys.leading_dense = 1;
  EXPECT_EQ(kinds("cohere2moe", keys), "fFFFuFFF");
}

TEST(LayersOf, OnlyTheDeepExaoneHasWindows) {
  EXPECT_EQ(kinds("exaone4", keys_of(30)), std::string(30, 'f'));
  EXPECT_EQ(kinds("exaone4", keys_of(64)).substr(0, 8), "FFFuFFFu");
}

TEST(LayersOf, UnrotatedLayers) {
  LayerKeys keys = keys_of(8);
  EXPECT_EQ(kinds("smollm3", keys), "fffufffu");
  keys.unrotated_period = 2;
  EXPECT_EQ(kinds("smollm3", keys), "fufufufu");
  keys.rotated = {true, true, true, true, true, true, false, true};
  EXPECT_EQ(kinds("smollm3", keys), "ffffffuf");
}

TEST(LayersOf, ModelsThatRotateOnlyFixedWindowsAreRefused) {
  refuses("llama4", keys_of(48), "only its sliding-window layers rotate");
  LayerKeys keys = keys_of(32);
  keys.sliding_window = 4096;
  refuses("smallthinker", keys, "smallthinker");
  refuses("afmoe", keys, "afmoe");
  keys.sliding_window = 0;
  EXPECT_EQ(kinds("smallthinker", keys), std::string(32, 'f'));
  refuses("llama4", keys, "aborts");
}

TEST(LayersOf, OnlyTheShallowBaichuanRotates) {
  EXPECT_EQ(kinds("baichuan", keys_of(32)), std::string(32, 'f'));
  refuses("baichuan", keys_of(40), "ALiBi");
}

TEST(LayersOf, RecurrentLayers) {
  LayerKeys keys = keys_of(4);
  keys.kv_heads = {0, 4, 0, 4};
  EXPECT_EQ(kinds("granitehybrid", keys), "rfrf");
  EXPECT_EQ(kinds("lfm2", keys), "rfrf");
  EXPECT_EQ(layers_of(named("lfm2"), keys)[0].kv_heads, 0);
  keys.sliding_window = 128;
  EXPECT_EQ(kinds("lfm2", keys), "rFrF");

  keys = keys_of(8);
  EXPECT_EQ(kinds("falcon-h1", keys), "ffffffff");
  EXPECT_EQ(kinds("qwen3next", keys), "rrrfrrrf");
  EXPECT_EQ(kinds("minimax-01", keys), "rrrrrrrf");
  keys.attention_period = 2;
  EXPECT_EQ(kinds("qwen3next", keys), "rfrfrfrf");
  keys.recurrent = {true, false, true, true, true, true, true, true};
  EXPECT_EQ(kinds("qwen3next", keys), "rfrrrrrr");
}

TEST(LayersOf, GraniteCanSwitchRotationOff) {
  LayerKeys keys = keys_of(2);
  keys.rope_finetuned = false;
  refuses("granite", keys, "switches the rotation off");
  EXPECT_EQ(kinds("granitemoe", keys), "ff");
  EXPECT_EQ(kinds("llama", keys), "ff");
}

TEST(LayersOf, IndexersRotateToo) {
  LayerKeys keys = keys_of(7, 1);
  const auto rotations = [&keys](std::string_view name) {
    std::vector<int> counts;
    for (const Layer& layer : layers_of(named(name), keys)) counts.push_back(layer.rotations);
    return counts;
  };
  const std::vector<int> all(7, 4);
  EXPECT_EQ(rotations("deepseek2"), std::vector<int>(7, 2));
  EXPECT_EQ(rotations("deepseek32"), all);
  EXPECT_EQ(rotations("glm-dsa"), all);
  keys.train_length = 1 << 20;
  EXPECT_EQ(rotations("glm-dsa"), (std::vector<int>{4, 4, 4, 2, 2, 2, 4}));
  keys.leading_dense = 3;
  EXPECT_EQ(rotations("minimax-m3"), (std::vector<int>{2, 2, 2, 4, 4, 4, 4}));
  EXPECT_EQ(rotations("hy_v4"), std::vector<int>(7, 2));
  keys.indexed = {true, false, false, false, true, false, false};
  EXPECT_EQ(rotations("hy_v4"), (std::vector<int>{4, 2, 2, 2, 4, 2, 2}));
  EXPECT_EQ(rotations("glm-dsa"), rotations("hy_v4"));
}

TEST(LayersOf, DraftLayersAreSkippedAndLoopsAreCounted) {
  LayerKeys keys = keys_of(5);
  keys.draft_layers = 1;
  EXPECT_EQ(kinds("glm4moe", keys), "ffff");
  keys.loops = 2;
  EXPECT_EQ(kinds("nanbeige", keys), "ffffffff");
}

TEST(LayersOf, ContradictoryKeysAreCorrupt) {
  contradicts("llama", keys_of(0));
  contradicts("llama", keys_of(-3));
  contradicts("llama", keys_of(513));

  LayerKeys keys = keys_of(4);
  keys.kv_heads = {};
  contradicts("llama", keys);
  keys.kv_heads = {4, 4, 4};
  contradicts("llama", keys);

  keys = keys_of(4);
  keys.draft_layers = 4;
  contradicts("llama", keys);
  keys.draft_layers = -1;
  contradicts("llama", keys);
  keys = keys_of(4);
  keys.loops = 1 << 30;
  contradicts("nanbeige", keys);
  keys.loops = 0;
  contradicts("nanbeige", keys);

  keys = keys_of(4);
  contradicts("gemma4", keys);
  keys.windowed = {true, false, true};
  contradicts("gemma4", keys);
  keys = keys_of(4);
  keys.recurrent = {true};
  contradicts("qwen3next", keys);
}

TEST(LayersOf, EverySupportedRowTakesAPlan) {
  for (const Architecture& row : architectures()) {
    if (!row.unsupported.empty()) continue;
    LayerKeys keys = keys_of(row.layers.rotates_at_depth != 0 ? row.layers.rotates_at_depth : 48);
    for (int i = 0; i < keys.layers; ++i) keys.windowed.push_back(i % 2 == 0);
    const std::vector<Layer> layers = layers_of(row, keys);
    EXPECT_TRUE(std::any_of(layers.begin(), layers.end(), [](const Layer& layer) {
      return layer.kind == LayerKind::full && layer.rotations > 0;
    })) << row.name;
  }
}

}  // namespace
}  // namespace mrrope
