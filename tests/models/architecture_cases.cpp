// SPDX-License-Identifier: Apache-2.0
#include "models/architecture_cases.h"

#include <gguf.h>

#include <algorithm>
#include <cctype>
#include <fstream>

namespace mrrope {
namespace {

constexpr int context_length = ArchitectureCase::kContextLength;
constexpr int window = 32;
constexpr int heads = 2;
constexpr int head_size = 32;
constexpr int part_of_head = 16;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_latent_keys(std::string_view name) {
  return find_architecture(name)->has(Trait::latent_attention) ||
         is_one_of(name, {"kimi-linear", "kimi-k3"});
}

bool is_listed(const nlohmann::json& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Some architectures must rotate whole heads; those listed are known to rotate a part of them.
int rotary_dim(std::string_view name) {
  const bool part =
      has_latent_keys(name) || is_listed(small_models("rotates_half_of_a_head"), name);
  return part ? part_of_head : head_size;
}

// What llama.cpp asks of one architecture or another besides the keys of its layers.
void describe_size(Metadata& model, const ArchitectureCase& probe) {
  const std::string& name = probe.architecture;
  const int layers = probe.keys.layers;
  set_keys(model, small_models("every"));
  model.set("context_length", static_cast<int>(probe.keys.train_length));
  model.set("rope.dimension_count", rotary_dim(name));
  if (probe.mrope_sections) {
    const int first = rotary_dim(name) / 2 - 6;
    model.set("rope.dimension_sections", std::vector<int>{first, 3, 3, 0});
  }
  for (const char* key : {"xielu.alpha_n", "xielu.alpha_p", "xielu.beta", "xielu.eps"}) {
    gguf_set_val_f32(model.get(), key, 1.0F);
  }
  if (has_latent_keys(name)) set_keys(model, small_models("latent_keys"));
  set_keys(model, small_models("one").value(name, nlohmann::json::object()));
  if (is_one_of(name, {"nemotron_h", "nemotron_h_moe"})) {
    std::vector<int> widths(layers, 0);
    for (int i = 2; i < layers; i += 3) widths[i] = 48;
    model.set("feed_forward_length", widths);
  }
  if (name == "hrm_text") model.set("hrm.h_cycles", layers / 2);
}

void describe_layers(Metadata& model, const LayerKeys& keys) {
  model.set("block_count", keys.layers);
  model.set("leading_dense_block_count", keys.leading_dense);
  model.set("rope.scaling.finetuned", keys.rope_finetuned);
  if (keys.draft_layers > 0) model.set("nextn_predict_layers", keys.draft_layers);
  if (keys.loops > 1) model.set("num_loops", keys.loops);
  if (keys.shared_kv_layers > 0) model.set("attention.shared_kv_layers", keys.shared_kv_layers);
  if (keys.kv_heads.size() == 1) {
    model.set("attention.head_count_kv", keys.kv_heads[0]);
  } else {
    model.set("attention.head_count_kv", keys.kv_heads);
  }
  if (keys.sliding_window >= 0) model.set("attention.sliding_window", keys.sliding_window);
  if (!keys.windowed.empty()) {
    model.set("attention.sliding_window_pattern", keys.windowed);
  } else if (keys.window_period >= 0) {
    model.set("attention.sliding_window_pattern", keys.window_period);
  }
  if (!keys.rotated.empty()) model.set("attention.rope_pattern", keys.rotated);
  if (!keys.recurrent.empty()) model.set("attention.recurrent_layers", keys.recurrent);
  if (keys.attention_period > 0) model.set("full_attention_interval", keys.attention_period);
  if (!keys.indexed.empty()) {
    const std::vector<int> types(keys.indexed.begin(), keys.indexed.end());
    model.set("attention.indexer.types", types);
    model.set("attention.compress_ratios", types);
  }
}
// Whether llama.cpp reads a pattern of windows from the file.
bool is_pattern(const Architecture& row) {
  return row.layers.windows != Windows::none && row.layers.windows != Windows::listed &&
         !is_one_of(row.name, {"lfm2", "smallthinker"});
}

std::vector<bool> every_third(int layers, int first) {
  std::vector<bool> values;
  for (int i = 0; i < layers; ++i) values.push_back(i % 3 == first);
  return values;
}

ArchitectureCase make_case(const Architecture& row, std::string variant = {}) {
  ArchitectureCase probe{
      .architecture = std::string(row.name), .variant = std::move(variant), .keys = {}};
  LayerKeys& keys = probe.keys;
  const LayerRule& rule = row.layers;
  keys.layers = rule.rotates_at_depth != 0 ? rule.rotates_at_depth
                : rule.kv_layers != 0      ? rule.kv_layers + 5
                                           : 10;
  keys.train_length = context_length;
  keys.leading_dense = 1;
  keys.sliding_window = rule.windows == Windows::unless_zero ? -1 : window;
  keys.kv_heads = {has_latent_keys(row.name) ? 1 : heads};
  if (rule.recurrence == Recurrence::without_kv_heads ||
      is_one_of(row.name, {"jamba", "nemotron_h", "nemotron_h_moe", "kimi-linear", "kimi-k3"})) {
    keys.kv_heads.resize(keys.layers, keys.kv_heads[0]);
    for (int i = 0; i < keys.layers; i += 3) keys.kv_heads[i] = 0;
  }
  if (rule.windows == Windows::listed || row.name == "maple") {
    keys.windowed = every_third(keys.layers, 1);
    keys.windowed.flip();
  }
  if (rule.indexer == Indexer::listed) keys.indexed = every_third(keys.layers, 0);
  if (rule.indexer == Indexer::unwindowed) keys.indexed = every_third(keys.layers, 1);
  return probe;
}

// Every row of the table as its default, and again with each key that its rule reads.
void add_row(std::vector<ArchitectureCase>& cases, const Architecture& row) {
  const LayerRule& rule = row.layers;
  cases.push_back(make_case(row));
  const auto add = [&](const char* variant) -> ArchitectureCase& {
    return cases.emplace_back(make_case(row, variant));
  };
  if (rule.windows == Windows::if_stated) {
    add("Unstated").keys.sliding_window = -1;
    add("Zero").keys.sliding_window = 0;
  }
  if (is_pattern(row)) {
    // Where later layers read the keys of earlier ones, llama.cpp needs the right kinds there.
    if (rule.kv_layers == 0) add("Period").keys.window_period = 3;
    add("Array").keys.windowed = every_third(cases.back().keys.layers, 0);
  }
  if (rule.windows_at_depth != 0) add("Deep").keys.layers = rule.windows_at_depth;
  if (rule.rotates_at_depth != 0) add("Deep").keys.layers = rule.rotates_at_depth + 8;
  if (rule.rope_switch || row.name == "granitemoe") add("Off").keys.rope_finetuned = false;
  if (rule.recurrence == Recurrence::between) {
    add("Period").keys.attention_period = 2;
    add("Array").keys.recurrent = every_third(cases.back().keys.layers, 0);
  }
  if (rule.indexer == Indexer::listed_or_every) {
    add("Array").keys.indexed = every_third(cases.back().keys.layers, 0);
    add("Million").keys.train_length = 1 << 20;
  }
  if (row.has(Trait::mrope) && row.pairing == Pairing::interleaved)
    add("Flat").mrope_sections = false;
  if (row.name == "nanbeige") add("Twice").keys.loops = 2;
  if (row.name == "gemma4") add("Shared").keys.shared_kv_layers = 5;
  if (row.name == "granite_swa") add("Array").keys.rotated = every_third(10, 1);
  if (row.name == "qwen3moe") add("Draft").keys.draft_layers = 1;
}

}  // namespace

const nlohmann::json& small_models(const char* part) {
  static const nlohmann::json all =
      nlohmann::json::parse(std::ifstream(MRROPE_GOLDEN_DIR "/../models/small_models.json"));
  return all.at(part);
}

void set_keys(Metadata& model, const nlohmann::json& keys) {
  for (const auto& [name, value] : keys.items()) model.set(name, value);
}

std::string ArchitectureCase::name() const {
  std::string text = architecture + variant;
  std::erase_if(text, [](unsigned char c) { return std::isalnum(c) == 0; });
  return text;
}

int ArchitectureCase::rotary_dim() const { return mrrope::rotary_dim(architecture); }

Metadata ArchitectureCase::metadata() const {
  Metadata model(architecture);
  describe_size(model, *this);
  describe_layers(model, keys);
  return model;
}

void PrintTo(const ArchitectureCase& sample, std::ostream* out) { *out << sample.name(); }

// Rows that cannot be compared this way, all of them without plans; the list says why.
bool has_no_case(std::string_view name) {
  const nlohmann::json& reasons = small_models("no_case");
  return std::any_of(reasons.begin(), reasons.end(),
                     [&](const nlohmann::json& reason) { return is_listed(reason[1], name); });
}

std::vector<ArchitectureCase> architecture_cases() {
  std::vector<ArchitectureCase> cases;
  for (const Architecture& row : architectures()) {
    if (!has_no_case(row.name)) add_row(cases, row);
  }
  return cases;
}

std::vector<ArchitectureCase> supported_cases() {
  std::vector<ArchitectureCase> cases = architecture_cases();
  std::erase_if(cases, [](const ArchitectureCase& c) {
    return !c.variant.empty() || !find_architecture(c.architecture)->unsupported.empty();
  });
  return cases;
}

std::vector<ArchitectureCase> cases_with_plans() {
  std::vector<ArchitectureCase> cases = supported_cases();
  std::erase_if(cases, [](const ArchitectureCase& c) {
    try {
      return std::ranges::none_of(
          layers_of(*find_architecture(c.architecture), c.keys),
          [](const Layer& layer) { return layer.rotations > 0 && !layer.windowed_cache; });
    } catch (const Error&) {
      return true;
    }
  });
  return cases;
}

}  // namespace mrrope
