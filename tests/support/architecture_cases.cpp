// SPDX-License-Identifier: Apache-2.0
#include "support/architecture_cases.h"

#include <gguf.h>

#include <algorithm>
#include <cctype>

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

// Some architectures must rotate whole heads; these are known to rotate a part of them.
int rotary_dim(std::string_view name) {
  const bool part =
      has_latent_keys(name) ||
      is_one_of(name, {"bailingmoe2", "chatglm",   "glm4",     "glm4moe",    "gptneox",
                       "laguna",      "mimo2",     "minicpm3", "minimax-01", "minimax-m2",
                       "minimax-m3",  "nemotron",  "phi2",     "phi3",       "qwen35",
                       "qwen35moe",   "qwen3next", "qwen4exp", "stablelm",   "step35"});
  return part ? part_of_head : head_size;
}

// What llama.cpp asks of one architecture or another besides the keys of its layers. Keys that an
// architecture does not know are harmless, so all get all.
void describe_size(Metadata& model, const ArchitectureCase& probe) {
  const std::string& name = probe.architecture;
  const int layers = probe.keys.layers;
  const auto set_all = [&](std::initializer_list<const char*> keys, auto value) {
    for (const char* key : keys) model.set(key, value);
  };
  model.set("context_length", static_cast<int>(probe.keys.train_length));
  model.set("embedding_length", heads * head_size);
  model.set("rope.dimension_count", rotary_dim(name));
  if (probe.mrope_sections) {
    const int first = rotary_dim(name) / 2 - 6;
    model.set("rope.dimension_sections", std::vector<int>{first, 3, 3, 0});
  }
  set_all({"attention.head_count", "ssm.time_step_rank", "ssm.group_count",
           "attention.indexer.head_count"},
          heads);
  set_all({"attention.key_length", "attention.value_length", "kda.head_dim", "wkv.head_size"},
          head_size);
  set_all({"expert_shared_count", "experts_per_group", "attention.indexer.local_blocks"}, 1);
  set_all({"expert_count", "expert_used_count", "expert_gating_func", "interleave_moe_layer_step",
           "hyper_connection.count"},
          2);
  model.set("shortconv.l_cache", 3);
  set_all({"ssm.conv_kernel", "attn_res.block_size", "attention.indexer.block_size",
           "hyper_connection.low_rank"},
          4);
  model.set("attention.indexer.top_k", 8);
  model.set("ssm.state_size", 32);
  set_all({"feed_forward_length", "expert_feed_forward_length", "expert_shared_feed_forward_length",
           "expert_latent_length"},
          48);
  set_all({"vocab_size", "ssm.inner_size", "attention.indexer.key_length"}, 64);
  model.set("use_parallel_residual", true);
  set_all({"attention.layer_norm_epsilon", "attention.layer_norm_rms_epsilon"}, 1e-5F);
  model.set("hyper_connection.epsilon", 1e-6F);
  set_all({"attention.clamp_kqv", "logit_scale", "residual_scale", "expert_group_scale"}, 1.0F);
  model.set("hyper_connection.magnitude", 2.0F);
  model.set("activation.situ_beta", 4.0F);
  model.set("activation.situ_linear_beta", 25.0F);
  model.set("kda.gate_lower_bound", -5.0F);
  model.set("swiglu_clamp_exp", 7.0F);
  for (const char* key : {"xielu.alpha_n", "xielu.alpha_p", "xielu.beta", "xielu.eps"}) {
    gguf_set_val_f32(model.get(), key, 1.0F);
  }

  model.set("attention.q_lora_rank", 24);
  model.set("attention.kv_lora_rank", 40);
  if (has_latent_keys(name)) {
    model.set("attention.key_length", 40 + part_of_head);
    model.set("attention.value_length", 40);
    model.set("attention.key_length_mla", head_size);
    model.set("attention.value_length_mla", 24);
    model.set("attention.kv_lora_rank_swa", 40);
    model.set("attention.key_length_swa", 40 + part_of_head);
    model.set("attention.value_length_swa", 40);
    model.set("attention.key_length_mla_swa", head_size);
    model.set("attention.value_length_mla_swa", 24);
    model.set("rope.freq_base_swa", 20000.0f);
  }
  if (name == "gemma4") {
    model.set("embedding_length_per_layer_input", 16);
    model.set("attention.key_length_swa", head_size);
    model.set("attention.value_length_swa", head_size);
  }
  if (name == "plamo2") model.set("ssm.group_count", 0);
  if (is_one_of(name, {"granitehybrid", "jamba", "mamba", "mamba2"})) {
    model.set("ssm.inner_size", 2 * heads * head_size);
  }
  if (is_one_of(name, {"nemotron_h", "nemotron_h_moe"})) {
    std::vector<int> widths(layers, 0);
    for (int i = 2; i < layers; i += 3) widths[i] = 48;
    model.set("feed_forward_length", widths);
  }
  if (name == "chameleon") model.set("vocab_size", 8200);
  if (name == "hrm_text") {
    model.set("hrm.layers_per_stack", 1);
    model.set("hrm.h_cycles", layers / 2);
    model.set("hrm.l_cycles", 1);
  }
  if (name == "graniteswitch") {
    model.set("adapters.count", 1);
    model.set("adapters.lora_rank", 4);
    model.set("adapters.token_ids_activate", std::vector<int>{1});
    model.set("adapters.token_ids_substitute", std::vector<int>{2});
  }
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

// Rows that cannot be compared this way, all of them without plans:
// - clip and gptj: llama.cpp loads neither as a model;
// - from bert to llama-embed: most of these encoders and diffusion models rotate and follow the
//   context, but predict no next token, and some want a vocabulary;
// - gemma4-assistant, eagle3, dflash: drafts ask for their target's context;
// - rwkv6 to arwkv7: want a dozen sizes of their own, and have no rotation in their sources;
// - t5, t5encoder: run an encoder first; no rotation in their sources;
// - glm5-next: wants sizes of its own; no rotation in its source;
// - deepseek4: rotates at compressed positions, where the context's scaling is one of several;
// - plm: aborts, which is why it has no plan;
// - wavtokenizer-dec, qwen3tts, pockettts: predict sound; the first has no rotation.
bool has_no_case(std::string_view name) {
  const std::string without =
      " clip gptj bert modern-bert nomic-bert neo-bert jina-bert-v2 jina-bert-v3 nomic-bert-moe "
      "eurobert gemma-embedding dream llada llada-moe rnd1 llama-embed gemma4-assistant eagle3 "
      "dflash rwkv6 rwkv6qwen2 rwkv7 arwkv7 t5 t5encoder glm5-next deepseek4 plm wavtokenizer-dec "
      "qwen3tts pockettts ";
  return without.find(" " + std::string(name) + " ") != std::string::npos;
}

std::vector<ArchitectureCase> architecture_cases() {
  std::vector<ArchitectureCase> cases;
  for (const Architecture& row : architectures()) {
    if (!has_no_case(row.name)) add_row(cases, row);
  }
  return cases;
}

}  // namespace mrrope
