// SPDX-License-Identifier: Apache-2.0
// Configs are our own, with the numbers of the models they are named after. Factors and attention
// scales marked so were recorded from transformers 5.22.2's own functions (ROPE_INIT_FUNCTIONS).
#include "base/json.h"
#include "formats/facts.h"
#include "support/expect_error.h"

namespace mrrope {
namespace {

using nlohmann::json;

Model model(const json& config, bool replace_scaling = false) {
  return finish_model(config_facts(config, "config.json"), replace_scaling);
}

std::string kinds(const Model& m) {
  std::string out;
  for (const Layer& layer : m.layers) out += "fwur"[static_cast<int>(layer.kind)];
  return out;
}

// {base config} with further keys on top.
json with(json config, const json& more) {
  config.update(more);
  return config;
}

const json kLlama2 = json::parse(R"({"model_type": "llama", "hidden_size": 4096,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
    "max_position_embeddings": 4096, "vocab_size": 32000, "rope_scaling": null})");
const json kLlama3 = json::parse(R"({"model_type": "llama", "hidden_size": 4096,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "max_position_embeddings": 8192, "rope_theta": 500000.0, "vocab_size": 128256})");
const json kLlama31 = with(kLlama3, json::parse(R"({"max_position_embeddings": 131072,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"}})"));
const json kQwen25 = json::parse(R"({"model_type": "qwen2", "hidden_size": 3584,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    "max_position_embeddings": 32768, "rope_theta": 1000000.0, "sliding_window": 131072,
    "use_sliding_window": false, "max_window_layers": 28})");
const json kGptOss = json::parse(R"({"model_type": "gpt_oss", "hidden_size": 2880, "head_dim": 64,
    "num_hidden_layers": 4, "num_attention_heads": 64, "num_key_value_heads": 8,
    "max_position_embeddings": 131072, "rope_theta": 150000, "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
                     "original_max_position_embeddings": 4096, "rope_type": "yarn",
                     "truncate": false}})");

void expect_factors(const Model& m, const std::vector<std::pair<int, double>>& expected) {
  ASSERT_EQ(m.geometry.trained_factor.size(), static_cast<std::size_t>(m.geometry.rotary_dim / 2));
  for (const auto& [pair, factor] : expected) {
    EXPECT_NEAR(m.geometry.trained_factor[pair] / factor, 1, 2e-6) << "pair " << pair;
  }
}

TEST(Config, Llama2) {
  const Model m = model(kLlama2);
  EXPECT_EQ(m.architecture, "llama");
  EXPECT_EQ(m.format, "huggingface");
  EXPECT_EQ(m.key_length, 128);
  EXPECT_EQ(m.kv_heads, 32);
  EXPECT_EQ(m.geometry, (Geometry{.rotary_dim = 128,
                                  .base = 10000,
                                  .train_length = 4096,
                                  .pairing = Pairing::halves,
                                  .trained_factor = {},
                                  .trained_attention_scale = 1}));
  EXPECT_EQ(m.scaling.type, "none");
  EXPECT_FALSE(m.scaling.trained);
  EXPECT_EQ(kinds(m), std::string(32, 'f'));
}

TEST(Config, Llama31) {
  const Model m = model(kLlama31);
  EXPECT_EQ(m.geometry.train_length, 131072);
  EXPECT_EQ(m.scaling.type, "llama3");
  EXPECT_EQ(m.scaling.original_length, 8192);
  EXPECT_EQ(m.scaling.beta_fast, 4);
  EXPECT_TRUE(m.scaling.trained);
  // transformers 5.22.2
  expect_factors(m, {{0, 1},
                     {28, 1},
                     {29, 1.2074839457},
                     {32, 2.6945304014},
                     {34, 5.2573272259},
                     {35, 8},
                     {63, 8}});
  EXPECT_EQ(m.geometry.trained_attention_scale, 1);
}

TEST(Config, ReplacedScalingIsTheBareModel) {
  const Model m = model(kLlama31, true);
  EXPECT_EQ(m.geometry.train_length, 8192);
  EXPECT_TRUE(m.geometry.trained_factor.empty());
  EXPECT_EQ(m.geometry.base, 500000);
  EXPECT_FALSE(m.scaling.trained);
  EXPECT_EQ(m.scaling.type, "llama3");
  EXPECT_EQ(model(kLlama3, true).geometry, model(kLlama3).geometry);
}

TEST(Config, KeysOfTransformers5GiveTheSame) {
  json v5 = kLlama31;
  v5["rope_parameters"] = v5["rope_scaling"];
  v5["rope_parameters"]["rope_theta"] = 500000.0;
  v5.erase("rope_scaling");
  v5.erase("rope_theta");
  EXPECT_EQ(model(v5).geometry, model(kLlama31).geometry);
  const json plain =
      with(kLlama2, {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}});
  EXPECT_EQ(model(plain).geometry, model(kLlama2).geometry);
  // An empty rope_scaling does not hide rope_parameters.
  v5["rope_scaling"] = json::object();
  EXPECT_EQ(model(v5).geometry.base, 500000);
}

TEST(Config, Qwen25AndItsRecommendedYarn) {
  const Model plain = model(kQwen25);
  EXPECT_EQ(plain.geometry.rotary_dim, 128);
  EXPECT_EQ(plain.geometry.train_length, 32768);
  EXPECT_EQ(plain.sliding_window, 0);
  EXPECT_EQ(plain.kv_heads, 4);
  const Model yarn = model(with(kQwen25, json::parse(R"({"rope_scaling": {"type": "yarn",
      "factor": 4.0, "original_max_position_embeddings": 32768}})")));
  EXPECT_EQ(yarn.geometry.train_length, 131072);
  EXPECT_EQ(yarn.scaling.original_length, 32768);
  // transformers 5.22.2
  expect_factors(yarn, {{0, 1}, {23, 1}, {30, 1.4468085}, {39, 3.4}, {40, 4}, {63, 4}});
  EXPECT_DOUBLE_EQ(yarn.geometry.trained_attention_scale, 1.138629436111989);
}

TEST(Config, GptOss) {
  const Model m = model(kGptOss);
  EXPECT_EQ(m.architecture, "gpt-oss");
  EXPECT_EQ(kinds(m), "wfwf");
  EXPECT_EQ(m.sliding_window, 128);
  EXPECT_EQ(m.geometry.train_length, 131072);
  // transformers 5.22.2: the ramp begins between two pairs
  expect_factors(m, {{0, 1},
                     {8, 1},
                     {9, 1.104299919},
                     {12, 1.6856946857},
                     {16, 5.6562538006},
                     {17, 13.7575217427},
                     {18, 32},
                     {31, 32}});
  EXPECT_DOUBLE_EQ(m.geometry.trained_attention_scale, 1.3465735902799727);
  EXPECT_EQ(model(kGptOss, true).geometry.train_length, 4096);
}

TEST(Config, Gemma3OmitsMostKeys) {
  const json four = json::parse(R"({"model_type": "gemma3", "vision_config": {"hidden_size": 1152},
      "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
                      "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                      "sliding_window": 1024}})");
  const Model m = model(four);
  EXPECT_EQ(m.architecture, "gemma3");
  EXPECT_EQ(m.heads, 8);
  EXPECT_EQ(m.kv_heads, 4);
  EXPECT_EQ(m.geometry.rotary_dim, 256);
  EXPECT_EQ(m.geometry.base, 1e6);
  EXPECT_EQ(m.geometry.train_length, 131072);
  EXPECT_EQ(kinds(m).substr(0, 12), "wwwwwfwwwwwf");
  expect_factors(m, {{0, 8}, {127, 8}});
  EXPECT_EQ(model(four, true).geometry.train_length, 16384);
  // transformers 5 writes it per layer type
  json v5 = four;
  v5["text_config"].erase("rope_scaling");
  v5["text_config"]["rope_parameters"] = json::parse(R"({
      "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
      "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})");
  EXPECT_EQ(model(v5).geometry, m.geometry);
}

TEST(Config, Phi3IsItsShortListInsideTheOriginalWindow) {
  json lists = json::array();
  json longer = json::array();
  for (int i = 0; i < 48; ++i) {
    lists.push_back(1 + 0.01 * i);
    longer.push_back(1 + 0.1 * i);
  }
  json phi = json::parse(R"({"model_type": "phi3", "hidden_size": 3072, "num_hidden_layers": 2,
      "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 131072,
      "original_max_position_embeddings": 4096, "rope_theta": 10000.0, "sliding_window": 262144,
      "rope_scaling": {"type": "su"}})");
  phi["rope_scaling"]["short_factor"] = lists;
  phi["rope_scaling"]["long_factor"] = longer;
  const Model m = model(phi);
  EXPECT_EQ(m.scaling.type, "longrope");
  EXPECT_EQ(m.geometry.train_length, 4096);
  EXPECT_EQ(m.scaling.factor, 32);
  EXPECT_EQ(m.geometry.long_factor, longer.get<std::vector<double>>());
  EXPECT_EQ(m.geometry.long_length, 131072);
  expect_factors(m, {{0, 1}, {1, 1.01}, {47, 1.47}});
  EXPECT_DOUBLE_EQ(m.geometry.trained_attention_scale, 1.1902380714238083);  // transformers 5.22.2
  EXPECT_EQ(kinds(m), "ff");
  // Two equal lists never switch.
  phi["rope_scaling"]["long_factor"] = lists;
  EXPECT_EQ(model(phi).geometry.train_length, 131072);
  EXPECT_EQ(model(phi, true).geometry.train_length, 4096);
  EXPECT_TRUE(model(phi, true).geometry.trained_factor.empty());

  for (const json& bad : {json(0), json(-1), json("1")}) {
    json broken = phi;
    broken["rope_scaling"]["short_factor"][7] = bad;
    EXPECT_ERROR(model(broken), corrupt, "short_factor[7]", bad.is_string() ? "1" : bad.dump());
  }
  phi["rope_scaling"]["long_factor"].push_back(1);
  EXPECT_ERROR(model(phi), corrupt, "long_factor", "49", "48");
}

TEST(Config, DeepSeekV2) {
  const Model m = model(json::parse(R"({"model_type": "deepseek_v2", "hidden_size": 2048,
      "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16,
      "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "max_position_embeddings": 163840, "rope_theta": 10000,
      "rope_scaling": {"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1,
                       "mscale": 0.707, "mscale_all_dim": 0.707,
                       "original_max_position_embeddings": 4096}})"));
  EXPECT_TRUE(m.latent_attention);
  EXPECT_EQ(m.key_length, 576);
  EXPECT_EQ(m.kv_heads, 1);
  EXPECT_EQ(m.geometry.rotary_dim, 64);
  EXPECT_EQ(m.geometry.pairing, Pairing::interleaved);
  EXPECT_EQ(m.geometry.train_length, 163840);
  // transformers 5.22.2
  expect_factors(m, {{0, 1}, {10, 1}, {11, 1.0810810811}, {15, 1.6}, {22, 10}, {23, 40}});
  EXPECT_EQ(m.geometry.trained_attention_scale, 1);
  // 27 layers of 576 elements, not 27 * 16 heads
  EXPECT_EQ(kv_bytes(m, 1000, 16), 27u * 576 * 2 * 1000);
}

TEST(Config, SmolLm3LeavesEveryFourthLayerUnrotated) {
  const json smol = json::parse(R"({"model_type": "smollm3", "hidden_size": 2048,
      "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 4,
      "max_position_embeddings": 65536, "rope_theta": 5000000.0, "no_rope_layer_interval": 4,
      "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0]})");
  EXPECT_EQ(kinds(model(smol)), "fffufffu");
  EXPECT_EQ(kinds(model(with(smol, {{"no_rope_layers", nullptr}}))), "fffufffu");
  EXPECT_EQ(kinds(model(with(smol, {{"no_rope_layers", {1, 1, 1, 1, 1, 1, 1, 0}}}))), "fffffffu");
  EXPECT_ERROR(model(with(smol, {{"no_rope_layers", {1, 0}}})), corrupt, "2 entries", "8 layers");
  EXPECT_ERROR(model(with(smol, {{"no_rope_layers", json::parse("[0,0,0,0,0,0,0,0]")}})),
               unsupported, "smollm3");
}

TEST(Config, Qwen2VlHasSections) {
  const json flat = json::parse(R"({"model_type": "qwen2_vl", "hidden_size": 1536,
      "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
      "max_position_embeddings": 32768, "rope_theta": 1000000.0,
      "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}})");
  const Model m = model(flat);
  EXPECT_EQ(m.architecture, "qwen2vl");
  EXPECT_EQ(m.mrope_sections, (std::vector<int>{16, 24, 24}));
  EXPECT_EQ(m.scaling.type, "none");
  json nested = {{"model_type", "qwen2_vl"}, {"text_config", flat}};
  nested["text_config"]["model_type"] = "qwen2_vl_text";
  EXPECT_EQ(model(nested).geometry, m.geometry);
}

TEST(Config, RotatesPartOfTheHead) {
  const json stable = json::parse(R"({"model_type": "stablelm", "hidden_size": 2560,
      "num_hidden_layers": 32, "num_attention_heads": 32, "max_position_embeddings": 4096,
      "rope_theta": 10000})");
  EXPECT_EQ(model(stable).geometry.rotary_dim, 20);  // transformers' default for it
  EXPECT_EQ(model(with(stable, {{"partial_rotary_factor", 0.4}})).geometry.rotary_dim, 32);
  EXPECT_EQ(model(with(stable, {{"rotary_dim", 64}})).geometry.rotary_dim, 64);
  const json neox = json::parse(R"({"model_type": "gpt_neox", "hidden_size": 6144,
      "num_hidden_layers": 44, "num_attention_heads": 64, "max_position_embeddings": 2048,
      "rotary_pct": 0.25, "rotary_emb_base": 20000})");
  EXPECT_EQ(model(neox).geometry.rotary_dim, 24);
  EXPECT_EQ(model(neox).geometry.base, 20000);
  const json glm = json::parse(R"({"model_type": "glm4", "hidden_size": 4096, "head_dim": 128,
      "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2,
      "max_position_embeddings": 32768, "partial_rotary_factor": 0.5, "rope_theta": 10000.0})");
  EXPECT_EQ(model(glm).geometry.rotary_dim, 64);
  EXPECT_EQ(model(glm).geometry.pairing, Pairing::interleaved);
}

TEST(Config, Gemma4HasPairsThatNeverTurnAndWiderFullLayers) {
  json gemma = json::parse(R"({"model_type": "gemma4", "text_config": {
      "model_type": "gemma4_text", "hidden_size": 2304, "num_hidden_layers": 2,
      "num_attention_heads": 8, "num_key_value_heads": 4,
      "head_dim": 256, "global_head_dim": 512, "sliding_window": 512,
      "layer_types": ["sliding_attention", "full_attention"],
      "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                           "rope_theta": 1000000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}})");
  const Model m = model(gemma, true);
  EXPECT_EQ(m.geometry.rotary_dim, 512);
  EXPECT_EQ(m.key_length, 512);
  EXPECT_EQ(m.geometry.trained_factor[63], 1);
  EXPECT_EQ(m.geometry.trained_factor[64], 1e30);
  EXPECT_EQ(m.scaling.type, "proportional");
  // transformers 5 says it layer by layer
  gemma["text_config"].erase("global_head_dim");
  gemma["text_config"]["per_layer_config"] =
      json::parse(R"({"00": {"head_dim": 16}, "01": {"head_dim": 512, "num_key_value_heads": 2}})");
  EXPECT_EQ(model(gemma, true).geometry, m.geometry);
  EXPECT_EQ(model(gemma).layers[0].kv_heads, 4);
  EXPECT_EQ(model(gemma).layers[1].kv_heads, 2);
}

TEST(Config, DynamicChangesNothingUnlessItsBaseIsFixed) {
  const Model m = model(with(kLlama2, json::parse(R"({"rope_scaling": {"type": "dynamic",
      "factor": 2.0}})")));
  EXPECT_EQ(m.geometry, model(kLlama2).geometry);
  EXPECT_EQ(m.scaling.type, "dynamic");
  EXPECT_FALSE(m.scaling.trained);
  const Model hunyuan = model(json::parse(R"({"model_type": "hunyuan_v1_dense",
      "hidden_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 32, "head_dim": 128,
      "max_position_embeddings": 262144, "rope_theta": 10000.0,
      "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}})"));
  EXPECT_NEAR(hunyuan.geometry.base, 11158839.9, 1);
  EXPECT_TRUE(hunyuan.scaling.trained);
}

TEST(Config, LinearAttentionLayersAreRecurrent) {
  const Model m = model(json::parse(R"({"model_type": "qwen3_next", "hidden_size": 2048,
      "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
      "max_position_embeddings": 262144, "rope_theta": 10000000, "partial_rotary_factor": 0.25,
      "layer_types": ["linear_attention", "linear_attention", "linear_attention",
                      "full_attention"]})"));
  EXPECT_EQ(kinds(m), "rrrf");
  EXPECT_EQ(m.geometry.rotary_dim, 64);
  EXPECT_EQ(kv_bytes(m, 100, 16), 100u * 2 * 2 * 256 * 2);
}

TEST(Config, AttentionLayersMayBeListed) {
  const json lfm = json::parse(R"({"model_type": "lfm2", "hidden_size": 64,
      "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
      "max_position_embeddings": 4096, "full_attn_idxs": [1, 3, 9]})");
  EXPECT_EQ(kinds(model(lfm)), "rfrf");
  EXPECT_EQ(model(lfm).geometry.base, 1e6);
  const json granite = json::parse(R"({"model_type": "granitemoehybrid", "hidden_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
      "max_position_embeddings": 4096, "layer_types": ["mamba", "attention"]})");
  EXPECT_EQ(kinds(model(granite)), "rf");
  EXPECT_ERROR(model(with(granite, {{"position_embedding_type", "nope"}})), unsupported,
               "granitehybrid", "rotation off");
}

TEST(Config, RefusesWhatCannotBeExtended) {
  EXPECT_ERROR(model(with(kLlama2, {{"model_type", "bloom"}})), unsupported, "bloom", "ALiBi");
  EXPECT_ERROR(model(with(kLlama2, {{"model_type", "gpt2"}})), unsupported, "learned");
  EXPECT_ERROR(model(with(kLlama2, {{"model_type", "nonesuch"}})), unsupported, "nonesuch");
  EXPECT_ERROR(model(with(kLlama2, {{"model_type", "falcon"}, {"alibi", true}})), unsupported,
               "alibi");
  EXPECT_ERROR(model(with(kLlama2, {{"rope_scaling", {{"type", "magic"}, {"factor", 2}}}})),
               unsupported, "magic");
}

TEST(Config, RefusesMissingKeysByName) {
  for (const char* key : {"model_type", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "max_position_embeddings"}) {
    json broken = kLlama2;
    broken.erase(key);
    EXPECT_ERROR(model(broken), corrupt, key);
  }
  EXPECT_ERROR(model(json::array()), corrupt, "object");
  EXPECT_ERROR(model(json::object()), corrupt, "model_type");
}

TEST(Config, RefusesImpossibleNumbers) {
  const auto refused = [](const char* key, const json& value, const std::string& name,
                          const std::string& text) {
    EXPECT_ERROR(model(with(kLlama3, {{key, value}})), corrupt, name, text);
  };
  refused("num_attention_heads", 0, "num_attention_heads", "0");
  refused("num_attention_heads", -4, "num_attention_heads", "-4");
  refused("num_attention_heads", 60000, "num_attention_heads", "60000");
  refused("num_hidden_layers", 0, "num_hidden_layers", "0");
  refused("num_hidden_layers", 1000000, "num_hidden_layers", "1000000");
  refused("hidden_size", "4096", "hidden_size", "\"4096\"");
  refused("hidden_size", 4096.5, "hidden_size", "4096.5");
  refused("hidden_size", 1e300, "hidden_size", "1e+300");
  refused("hidden_size", json::array({1, 2}), "hidden_size", "array");
  refused("max_position_embeddings", 0, "max_position_embeddings", "0");
  refused("max_position_embeddings", 4294967295u, "max_position_embeddings", "4294967295");
  refused("max_position_embeddings", UINT64_MAX, "max_position_embeddings", "18446744073709551615");
  refused("max_position_embeddings", "8192", "max_position_embeddings", "\"8192\"");
  refused("max_position_embeddings", true, "max_position_embeddings", "true");
  refused("rope_theta", 0, "rope_theta", "0");
  refused("rope_theta", -10000, "rope_theta", "-10000");
  refused("rope_theta", 1, "rope_theta", "1");
  refused("rope_theta", 1e38, "rope_theta", "1e+38");
  refused("rope_theta", "1e4", "rope_theta", "\"1e4\"");
  refused("head_dim", 127, "head_dim", "127");
  refused("head_dim", 2, "head_dim", "2");
  refused("head_dim", 0, "head_dim", "0");
  refused("rotary_dim", 256, "rotary_dim", "256");
  refused("rotary_dim", 31, "rotary_dim", "31");
  refused("rotary_dim", 0, "rotary_dim", "0");
  refused("partial_rotary_factor", 0, "partial_rotary_factor", "0");
  refused("partial_rotary_factor", 1.5, "partial_rotary_factor", "1.5");
  refused("partial_rotary_factor", 0.26, "partial_rotary_factor", "0.26");
  refused("vocab_size", -1, "vocab_size", "-1");
  refused("rope_scaling", "yarn", "rope_scaling", "\"yarn\"");
  refused("layer_types", json::array({"full_attention"}), "layer_types", "1 entries");
  refused("layer_types", json::array({1}), "layer_types[0]", "1");
  refused("text_config", 3, "text_config", "3");
}

TEST(Config, RefusesImpossibleScaling) {
  const auto refused = [](const json& change, const std::string& name, const std::string& text) {
    json broken = kLlama31;
    broken["rope_scaling"].update(change);
    EXPECT_ERROR(model(broken), corrupt, name, text);
  };
  refused({{"factor", 0.5}}, "factor", "0.5");
  refused({{"factor", 0}}, "factor", "0");
  refused({{"factor", -8}}, "factor", "-8");
  refused({{"factor", 1e9}}, "factor", "1e+09");
  refused({{"factor", "8"}}, "factor", "\"8\"");
  refused({{"factor", nullptr}}, "factor", "no factor");
  refused({{"low_freq_factor", 0}}, "low_freq_factor", "0");
  refused({{"low_freq_factor", 4}}, "high_freq_factor", "4");
  refused({{"original_max_position_embeddings", 0}}, "original_max_position_embeddings", "0");
  refused({{"original_max_position_embeddings", "8k"}}, "original_max_position_embeddings", "8k");
  refused({{"rope_type", 3}}, "rope_type", "3");
  refused({{"rope_type", "yarn"}, {"beta_fast", 0.5}}, "beta_fast", "0.5");
  refused({{"rope_type", "yarn"}, {"attention_factor", -1}}, "attention_factor", "-1");
  refused({{"rope_type", "longrope"}}, "short_factor", "0 entries");
}

TEST(Config, RefusesEveryTruncation) {
  const std::string text = kLlama31.dump();
  for (std::size_t n = 0; n < text.size(); ++n) {
    EXPECT_ERROR(model(parse_json(text.substr(0, n), "config.json")), corrupt, "config.json");
  }
}

}  // namespace
}  // namespace mrrope
