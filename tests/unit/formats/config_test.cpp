// SPDX-License-Identifier: Apache-2.0
// What a config.json, the keys of a GGUF file and a row of the table of architectures say about a
// model. Configs are our own, with the numbers of the models they are named after. The factors and
// attention scales of llama31, qwen25, gpt-oss, phi3 and deepseek2 in the transcript were compared
// with those of transformers 5.22.2's own functions (ROPE_INIT_FUNCTIONS).

#include "base/text.h"
#include "formats/architectures.h"
#include "formats/facts.h"
#include "formats/gguf/gguf.h"
#include "models/gguf_writer.h"
#include "support/test.h"

namespace mrrope {
namespace {

// One letter per layer: full, windowed, unrotated, recurrent; a capital keeps a short cache.
std::string kinds(const std::vector<Layer>& layers) {
  std::string text;
  for (const Layer& layer : layers) {
    text += (layer.windowed_cache ? "FWUR" : "fwur")[static_cast<int>(layer.kind)];
  }
  return text;
}

// "1 x29, 1.2074839, 8 x2".
std::string listed(const std::vector<double>& values) {
  std::string text;
  for (std::size_t i = 0, next = 0; i < values.size(); i = next) {
    while (next < values.size() && values[next] == values[i]) ++next;
    text += cat(text.empty() ? "" : ", ", significant(values[i], 8));
    if (next - i > 1) text += cat(" x", next - i);
  }
  return text;
}

// The layers' kinds; keys, rotations and values where those of layers differ.
ordered_json described(const std::vector<Layer>& layers) {
  std::vector<double> heads, rotations;
  for (const Layer& layer : layers) {
    heads.push_back(layer.kv_heads);
    rotations.push_back(layer.rotations);
  }
  return {{"layers", kinds(layers)}, {"kv_heads", listed(heads)}, {"rotations", listed(rotations)}};
}

std::string described(const Model& m) {
  const auto given = [](const auto& value) { return value ? ordered_json(*value) : nullptr; };
  ordered_json all = described(m.layers);
  all.update({{"format", m.format},
              {"name", m.name},
              {"architecture", m.architecture},
              {"embedding", m.embedding},
              {"heads", m.heads},
              {"most_kv_heads", m.kv_heads},
              {"key_length", m.key_length},
              {"value_length", m.value_length},
              {"vocabulary", m.vocabulary},
              {"sliding_window", m.sliding_window},
              {"latent_attention", m.latent_attention},
              {"mrope_sections", m.mrope_sections},
              {"rotary_dim", m.geometry.rotary_dim},
              {"base", significant(m.geometry.base, 9)},
              {"train_length", m.geometry.train_length},
              {"pairing", to_string(m.geometry.pairing)},
              {"factors", listed(m.geometry.trained_factor)},
              {"attention_scale", significant(m.geometry.trained_attention_scale, 10)},
              {"scaling", m.scaling.type},
              {"factor", m.scaling.factor},
              {"original_length", m.scaling.original_length},
              {"beta_fast", given(m.scaling.beta_fast)},
              {"beta_slow", given(m.scaling.beta_slow)},
              {"short_factor", listed(m.scaling.short_factor)},
              {"long_factor", listed(m.scaling.long_factor)},
              {"trained", m.scaling.trained},
              {"list_beyond_the_window", listed(m.geometry.long_factor)},
              {"list_reaches", m.geometry.long_length},
              {"kv_bytes_of_128k", kv_bytes(m, 131072, 16)}});
  ordered_json said;
  const json nothing = {0, 1, "", "1", false, nullptr, json::array()};
  for (const auto& [key, value] : all.items()) {
    if (std::find(nothing.begin(), nothing.end(), json(value)) == nothing.end()) said[key] = value;
  }
  return said.dump();
}

// {"rope_theta": 1} on top of what was named before.
class Configs {
 public:
  std::string answer(const std::string& verb, const std::string& name, const std::string& rest) {
    json config = known_[name];
    if (verb == "without") {
      config.erase(rest);
    } else if (verb == "scaling") {
      config["rope_scaling"].update(json::parse(rest));
    } else if (verb == "text") {
      config["text_config"].update(json::parse(rest));
    } else {
      config.update(json::parse(rest));
    }
    if (verb == "named") known_[name] = config;
    return described(finish_model(config_facts(config, "config.json"), verb == "replaced"));
  }

 private:
  std::map<std::string, json> known_;
};

// Keys on top of those of a small llama: whole numbers are u32, others f32, lists arrays of i32;
// "tensor NAME" is a list of f32.
GgufWriter gguf_of(const json& more) {
  const auto name = more.value("general.architecture", json("llama")).get<std::string>();
  json keys = {{"general.architecture", name},
               {"general.name", "Small Llama"},
               {name + ".context_length", 4096},
               {name + ".embedding_length", 64},
               {name + ".block_count", 2},
               {name + ".attention.head_count", 4},
               {name + ".attention.head_count_kv", 2},
               {name + ".rope.dimension_count", 16},
               {name + ".rope.freq_base", 10000.0}};
  keys.update(more);
  GgufWriter out;
  const auto real = [](const json& value) {
    return value.is_string() ? std::stof(value.get<std::string>()) : value.get<float>();
  };
  for (const auto& [key, value] : keys.items()) {
    if (key.starts_with("tensor ")) {
      std::vector<float> values;
      for (const json& element : value) values.push_back(real(element));
      out.floats(key.substr(7), values);
    } else if (value == "nan" || value == "inf" || value.is_number_float()) {
      out.f32(key, real(value));
    } else if (value.is_string()) {
      out.text(key, value.get<std::string>());
    } else if (value.is_array()) {
      out.array<std::int32_t>(key, 5, value.get<std::vector<std::int32_t>>());
    } else if (!value.is_null()) {
      out.u32(key, value.get<std::uint32_t>());
    }
  }
  return out.strings("tokenizer.ggml.tokens", {"a", "b", "c"});
}

// A row of the table with the keys of a file.
std::string layers_answer(const std::string& name, const json& given) {
  const Architecture* row = find_architecture(name);
  if (row == nullptr) return "no row";
  LayerKeys keys;
  const auto flags = [&](const char* key) { return given.value(key, std::vector<bool>()); };
  const auto take = [&](const char* key, int& value) { value = given.value(key, value); };
  take("layers", keys.layers);
  take("draft_layers", keys.draft_layers);
  take("loops", keys.loops);
  take("shared_kv_layers", keys.shared_kv_layers);
  take("leading_dense", keys.leading_dense);
  take("sliding_window", keys.sliding_window);
  take("window_period", keys.window_period);
  take("unrotated_period", keys.unrotated_period);
  take("attention_period", keys.attention_period);
  keys.kv_heads = given.value("kv_heads", std::vector<int>{4});
  keys.train_length = given.value("train_length", std::int64_t{0});
  keys.windowed = flags("windowed");
  keys.rotated = flags("rotated");
  keys.rope_finetuned = given.value("rope_finetuned", true);
  keys.recurrent = flags("recurrent");
  keys.indexed = flags("indexed");
  ordered_json said = described(layers_of(*row, keys));
  said["window"] = window_of(*row, keys);
  return said.dump();
}

TEST(Config, WhatModelsSayAboutThemselves) {
  Configs configs;
  test::expect_transcript("models", [&](const std::string& input) {
    std::istringstream words(input);
    std::string verb, name, rest;
    words >> verb;
    if (!verb.starts_with("gguf")) words >> name;
    std::getline(words >> std::ws, rest);
    return test::or_error([&] {
      if (verb == "layers") return layers_answer(name, json::parse(rest));
      if (!verb.starts_with("gguf")) return configs.answer(verb, name, rest);
      const std::string bytes = gguf_of(json::parse(rest)).bytes();
      const auto source = Source::memory(std::as_bytes(std::span(bytes)), "x.gguf");
      const Gguf gguf{{read_gguf_part(source)}};
      return described(finish_model(gguf_facts(gguf), verb == "gguf-replaced"));
    });
  });
}

TEST(Config, IsAnObject) {
  EXPECT_ERROR(config_facts(json::array(), "config.json"), corrupt, "config.json", "object");
}

}  // namespace
}  // namespace mrrope
