// SPDX-License-Identifier: Apache-2.0
// The table of architectures against llama.cpp itself: for every row a small model is built from
// metadata alone, and the rotations of one token show which layers rotate, in which pairing, over
// how many dimensions, which of them follow the context's scaling, and what becomes of factors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/architectures.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "gguf.h"
#include "llama.h"
#include "mrrope/error.h"

namespace mrrope {
namespace {

constexpr float probe_scale = 0.37f;
constexpr int context_length = 1024;
constexpr int window = 32;
constexpr int heads = 2;
constexpr int head_size = 32;
constexpr int part_of_head = 16;

class Metadata {
 public:
  explicit Metadata(std::string_view architecture)
      : context_(gguf_init_empty()), prefix_(std::string(architecture) + ".") {
    gguf_set_val_str(get(), "general.architecture", std::string(architecture).c_str());
    gguf_set_val_str(get(), "tokenizer.ggml.model", "none");
  }

  gguf_context* get() const { return context_.get(); }

  void set(const char* key, int value) {
    gguf_set_val_u32(get(), full(key).c_str(), static_cast<std::uint32_t>(value));
  }
  void set(const char* key, float value) { gguf_set_val_f32(get(), full(key).c_str(), value); }
  void set(const char* key, bool value) { gguf_set_val_bool(get(), full(key).c_str(), value); }
  void set(const char* key, const std::vector<int>& values) {
    gguf_set_arr_data(get(), full(key).c_str(), GGUF_TYPE_INT32, values.data(), values.size());
  }
  void set(const char* key, const std::vector<float>& values) {
    gguf_set_arr_data(get(), full(key).c_str(), GGUF_TYPE_FLOAT32, values.data(), values.size());
  }
  void set(const char* key, const std::vector<std::uint64_t>& values) {
    gguf_set_arr_data(get(), full(key).c_str(), GGUF_TYPE_UINT64, values.data(), values.size());
  }
  void set(const char* key, const std::vector<bool>& values) {
    const std::vector<std::int8_t> bytes(values.begin(), values.end());
    gguf_set_arr_data(get(), full(key).c_str(), GGUF_TYPE_BOOL, bytes.data(), bytes.size());
  }

 private:
  struct Free {
    void operator()(gguf_context* owned) const { gguf_free(owned); }
  };
  std::string full(const char* key) const { return prefix_ + key; }

  std::unique_ptr<gguf_context, Free> context_;
  std::string prefix_;
};

// One model to build: the keys that decide about its layers, and a word that tells it from others
// of the same architecture.
struct Case {
  std::string architecture;
  std::string variant;
  LayerKeys keys;
  bool mrope_sections = true;
};

void PrintTo(const Case& probe, std::ostream* out) { *out << probe.architecture; }

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_latent_keys(std::string_view name) {
  return find_architecture(name)->latent_attention || is_one_of(name, {"kimi-linear", "kimi-k3"});
}

// Some architectures insist on rotating whole heads; these are known to rotate a part of them.
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
void describe_size(Metadata& model, const Case& probe) {
  const std::string& name = probe.architecture;
  const int layers = probe.keys.layers;
  model.set("vocab_size", 64);
  model.set("context_length", static_cast<int>(probe.keys.train_length));
  model.set("embedding_length", heads * head_size);
  model.set("feed_forward_length", 48);
  model.set("attention.head_count", heads);
  model.set("attention.key_length", head_size);
  model.set("attention.value_length", head_size);
  model.set("attention.layer_norm_epsilon", 1e-5f);
  model.set("attention.layer_norm_rms_epsilon", 1e-5f);
  model.set("attention.clamp_kqv", 1.0f);
  model.set("logit_scale", 1.0f);
  model.set("residual_scale", 1.0f);
  model.set("use_parallel_residual", true);
  model.set("rope.dimension_count", rotary_dim(name));
  if (probe.mrope_sections) {
    const int first = rotary_dim(name) / 2 - 6;
    model.set("rope.dimension_sections", std::vector<int>{first, 3, 3, 0});
  }

  model.set("expert_count", 2);
  model.set("expert_used_count", 2);
  model.set("expert_shared_count", 1);
  model.set("expert_feed_forward_length", 48);
  model.set("expert_shared_feed_forward_length", 48);
  model.set("expert_gating_func", 2);
  model.set("expert_group_scale", 1.0f);
  model.set("experts_per_group", 1);
  model.set("interleave_moe_layer_step", 2);

  model.set("ssm.conv_kernel", 4);
  model.set("ssm.inner_size", 64);
  model.set("ssm.state_size", 32);
  model.set("ssm.time_step_rank", heads);
  model.set("ssm.group_count", heads);
  model.set("kda.head_dim", head_size);
  model.set("kda.gate_lower_bound", -5.0f);
  model.set("shortconv.l_cache", 3);
  model.set("attn_res.block_size", 4);
  model.set("activation.situ_beta", 4.0f);
  model.set("activation.situ_linear_beta", 25.0f);
  model.set("expert_latent_length", 48);
  model.set("wkv.head_size", head_size);

  model.set("attention.indexer.head_count", heads);
  model.set("attention.indexer.key_length", 64);
  model.set("attention.indexer.top_k", 8);
  model.set("attention.indexer.block_size", 4);
  model.set("attention.indexer.local_blocks", 1);
  model.set("hyper_connection.count", 2);
  model.set("hyper_connection.epsilon", 1e-6f);
  model.set("hyper_connection.magnitude", 2.0f);
  model.set("hyper_connection.low_rank", 4);
  model.set("swiglu_clamp_exp", 7.0f);
  for (const char* key : {"xielu.alpha_n", "xielu.alpha_p", "xielu.beta", "xielu.eps"}) {
    gguf_set_val_f32(model.get(), key, 1.0f);
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

struct Rotation {
  int layer;
  int dims;
  int mode;
  bool follows;
  std::string factors;  // name of the factor tensor, empty: none
};

// What one pass through a model showed.
struct Pass {
  std::vector<Rotation> rotations;
  std::map<int, std::int64_t> cells;  // of the key cache, by layer
  std::vector<float> score_scales;
  int layer = -1;  // of the node seen last
};

// The number at the end of `name` after `mark`, or -1.
int number_after(std::string_view name, std::string_view mark) {
  const auto at = name.rfind(mark);
  if (at == std::string_view::npos) return -1;
  int value = -1;
  for (const char c : name.substr(at + mark.size())) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) break;
    value = std::max(value, 0) * 10 + (c - '0');
  }
  return value;
}

float float_parameter(const ggml_tensor* node, int index) {
  float value;
  std::memcpy(&value, node->op_params + index, sizeof value);
  return value;
}

// llama.cpp asks for every node in order, before it runs; the answer is always "not needed".
bool watch(ggml_tensor* node, bool ask, void* user) {
  if (!ask) return true;
  Pass& pass = *static_cast<Pass*>(user);
  if (const int layer = number_after(node->name, "-"); layer >= 0) pass.layer = layer;
  switch (node->op) {
    case GGML_OP_ROPE:
      pass.rotations.push_back({.layer = pass.layer,
                                .dims = node->op_params[1],
                                .mode = node->op_params[2],
                                .follows = float_parameter(node, 6) == probe_scale,
                                .factors = node->src[2] != nullptr ? node->src[2]->name : ""});
      break;
    case GGML_OP_SET_ROWS:
      if (const int layer = number_after(node->view_src->name, "cache_k_l"); layer >= 0) {
        pass.cells[layer] = node->view_src->ne[1];
      }
      break;
    case GGML_OP_SOFT_MAX:
    case GGML_OP_FLASH_ATTN_EXT:
      pass.score_scales.push_back(float_parameter(node, 0));
      break;
    default:
      break;
  }
  return false;
}

class Probe {
 public:
  explicit Probe(const Case& probe) {
    llama_log_set(&Probe::keep_errors, this);
    Metadata metadata(probe.architecture);
    describe_size(metadata, probe);
    describe_layers(metadata, probe.keys);
    llama_model_params parameters = llama_model_default_params();
    parameters.n_gpu_layers = 0;
    model_.reset(llama_model_init_from_user(metadata.get(), &Probe::fill, this, parameters));
  }

  ~Probe() {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  }

  explicit operator bool() const { return model_ != nullptr; }
  const std::string& errors() const { return errors_; }
  const std::vector<std::string>& tensors() const { return tensors_; }

  // One token with the given scale; empty if it did not run.
  std::unique_ptr<Pass> pass(float scale) {
    auto seen = std::make_unique<Pass>();
    llama_context_params parameters = llama_context_default_params();
    parameters.n_ctx = context_length;
    parameters.n_batch = 8;
    parameters.n_ubatch = 8;
    parameters.n_threads = 1;
    parameters.n_threads_batch = 1;
    parameters.swa_full = false;
    parameters.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_LINEAR;
    parameters.rope_freq_scale = scale;
    parameters.cb_eval = watch;
    parameters.cb_eval_user_data = seen.get();
    const std::unique_ptr<llama_context, decltype(&llama_free)> running(
        llama_init_from_model(model_.get(), parameters), &llama_free);
    if (!running) return nullptr;
    llama_token token = 3;
    if (llama_decode(running.get(), llama_batch_get_one(&token, 1)) != 0) return nullptr;
    return seen;
  }

 private:
  struct Free {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };

  static void keep_errors(ggml_log_level level, const char* text, void* user) {
    if (level == GGML_LOG_LEVEL_ERROR) static_cast<Probe*>(user)->errors_ += text;
  }

  // Zeros will do: which nodes there are does not depend on the weights.
  static void fill(ggml_tensor* tensor, void* user) {
    static_cast<Probe*>(user)->tensors_.emplace_back(tensor->name);
    ggml_backend_tensor_memset(tensor, 0, 0, ggml_nbytes(tensor));
  }

  std::string errors_;
  std::vector<std::string> tensors_;
  std::unique_ptr<llama_model, Free> model_;
};

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

Case make_case(const Architecture& row, std::string variant = {}) {
  Case probe{.architecture = std::string(row.name), .variant = std::move(variant), .keys = {}};
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

// Every row of the table as its default, and again with each key that its rule listens to.
void add_row(std::vector<Case>& cases, const Architecture& row) {
  const LayerRule& rule = row.layers;
  cases.push_back(make_case(row));
  const auto add = [&](const char* variant) -> Case& {
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
  if (row.mrope && row.pairing == Pairing::interleaved) add("Flat").mrope_sections = false;
  if (row.name == "nanbeige") add("Twice").keys.loops = 2;
  if (row.name == "gemma4") add("Shared").keys.shared_kv_layers = 5;
  if (row.name == "granite_swa") add("Array").keys.rotated = every_third(10, 1);
  if (row.name == "qwen3moe") add("Draft").keys.draft_layers = 1;
}

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
bool is_not_compared(std::string_view name) {
  return is_one_of(name, {"clip",
                          "gptj",
                          "bert",
                          "modern-bert",
                          "nomic-bert",
                          "neo-bert",
                          "jina-bert-v2",
                          "jina-bert-v3",
                          "nomic-bert-moe",
                          "eurobert",
                          "gemma-embedding",
                          "dream",
                          "llada",
                          "llada-moe",
                          "rnd1",
                          "llama-embed",
                          "gemma4-assistant",
                          "eagle3",
                          "dflash",
                          "rwkv6",
                          "rwkv6qwen2",
                          "rwkv7",
                          "arwkv7",
                          "t5",
                          "t5encoder",
                          "glm5-next",
                          "deepseek4",
                          "plm",
                          "wavtokenizer-dec",
                          "qwen3tts",
                          "pockettts"});
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Architecture& row : architectures()) {
    if (!is_not_compared(row.name)) add_row(cases, row);
  }
  return cases;
}

bool is_in_halves(int mode) { return (mode & (GGML_ROPE_TYPE_NEOX | GGML_ROPE_TYPE_MROPE)) != 0; }

FactorSupport factors_seen(const std::vector<std::string>& tensors, const Pass& pass) {
  const auto loads = [&](const char* name) {
    return std::find(tensors.begin(), tensors.end(), name) != tensors.end();
  };
  const bool applied = std::any_of(pass.rotations.begin(), pass.rotations.end(),
                                   [](const Rotation& seen) { return !seen.factors.empty(); });
  if (loads("rope_freqs.weight")) return applied ? FactorSupport::used : FactorSupport::ignored;
  return loads("rope_factors_long.weight") && applied ? FactorSupport::long_short
                                                      : FactorSupport::refused;
}

class ArchitectureProbe : public testing::TestWithParam<Case> {};

TEST_P(ArchitectureProbe, AgreesWithTheTable) {
  const Case& sample = GetParam();
  const Architecture& row = *find_architecture(sample.architecture);
  Probe probe(sample);
  ASSERT_TRUE(probe) << probe.errors();
  const auto seen = probe.pass(probe_scale);
  ASSERT_TRUE(seen) << probe.errors();

  std::vector<Layer> layers;
  try {
    layers = layers_of(row, sample.keys);
  } catch (const Error& error) {
    ASSERT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
    for (const Rotation& rotation : seen->rotations) {
      EXPECT_FALSE(rotation.follows) << "layer " << rotation.layer << " takes a plan";
    }
    return;
  }

  std::map<int, std::vector<Rotation>> by_layer;
  for (const Rotation& rotation : seen->rotations) by_layer[rotation.layer].push_back(rotation);
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    SCOPED_TRACE("layer " + std::to_string(i));
    const Layer& layer = layers[i];
    const int queries_and_keys = layer.kv_heads > 0 ? 2 : 1;
    int following = 0, aside = 0, paired = 0;
    for (const Rotation& rotation : by_layer[i]) {
      ++(rotation.follows ? following : aside);
      if (!rotation.follows) continue;
      EXPECT_EQ(rotation.dims, rotary_dim(row.name) / row.rotary_divisor);
      const Pairing pairing = is_in_halves(rotation.mode) ? Pairing::halves : Pairing::interleaved;
      paired += pairing == gguf_pairing(row, sample.mrope_sections);
      EXPECT_EQ((rotation.mode & GGML_ROPE_TYPE_MROPE) != 0, row.mrope && sample.mrope_sections);
    }
    EXPECT_EQ(following, layer.rotations);
    EXPECT_EQ(aside, layer.kind == LayerKind::windowed ? queries_and_keys : 0);
    // An indexer may pair in its own way.
    EXPECT_GE(paired, row.layers.indexer == Indexer::none ? following
                      : following > 0                     ? queries_and_keys
                                                          : 0);
    EXPECT_EQ(seen->cells.count(i) != 0, layer.kv_heads > 0);
    if (layer.kv_heads > 0) {
      const bool is_short = layer.windowed_cache && window_of(row, sample.keys) < context_length;
      EXPECT_EQ(seen->cells[i] < context_length, is_short);
    }
    by_layer.erase(i);
  }
  EXPECT_TRUE(by_layer.empty()) << "rotations in layer " << by_layer.begin()->first;
  EXPECT_EQ(factors_seen(probe.tensors(), *seen), row.factors);

  const auto unscaled = probe.pass(1);
  ASSERT_TRUE(unscaled) << probe.errors();
  EXPECT_EQ(seen->score_scales != unscaled->score_scales, row.scale_in_scores);
}

TEST(ArchitectureProbeList, LeavesOutNoRowWithPlans) {
  for (const Architecture& row : architectures()) {
    EXPECT_FALSE(is_not_compared(row.name) && row.unsupported.empty()) << row.name;
  }
}

std::string test_name(const testing::TestParamInfo<Case>& test) {
  std::string name = test.param.architecture + test.param.variant;
  std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(Rows, ArchitectureProbe, testing::ValuesIn(all_cases()), test_name);

}  // namespace
}  // namespace mrrope
