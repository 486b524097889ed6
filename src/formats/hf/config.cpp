// SPDX-License-Identifier: Apache-2.0
// Hugging Face config.json, as transformers 4 and 5 write it.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "core/methods.h"
#include "formats/facts.h"
#include "formats/json_keys.h"

namespace mrrope {
namespace {

using nlohmann::json;
using Keys = JsonKeys;
using Names = Keys::Names;

// What transformers assumes where a config.json of this kind is silent (architectures.json).
json config_defaults(std::string_view model_type, bool nested) {
  static const json file = json::parse(embedded::architectures_json);
  for (json row : file.at("transformers")) {
    if (!has_word(row["model_types"].get_ref<const std::string&>(), model_type)) continue;
    if (nested) row.update(row.value("nested", json::object()));
    return row;
  }
  return json::object();
}

struct TextModel {
  Keys keys;
  std::string model_type;
  bool nested;
};

// The language model: the file itself, or the part of a composite that holds it.
TextModel text_model(const Keys& root) {
  const std::string outer = root.text({"model_type"});
  for (const char* name : kTextParts) {
    if (const auto inner = root.object({name})) {
      const std::string type = inner->text({"model_type"});
      // A composite may name only itself, and its text part only when it differs from a default.
      return {*inner, find_huggingface(type) || outer.empty() ? type : outer, true};
    }
  }
  return {root, outer, false};
}

const Architecture& architecture_of(const Keys& keys, const std::string& model_type) {
  if (model_type.empty()) keys.refuse("has no model_type");
  const Architecture& found =
      supported(find_huggingface(model_type), keys.where(), "model_type", model_type);
  unsupported_if(keys.flag({"alibi"}).value_or(false),
                 cat(keys.where(), ": alibi is true: positions are ALiBi biases, there is no ",
                     "rotation to change"),
                 "only models that turn queries and keys (RoPE) can be extended");
  return found;
}

void read_heads(const Keys& keys, Facts& facts) {
  Model& model = facts.model;
  model.embedding = keys.required({"hidden_size", "n_embd", "d_model"}, 1, kMaxWidth, 0);
  const Names head_names = {"num_attention_heads", "n_head", "n_heads", "num_query_heads"};
  const auto heads = keys.integers(head_names, 0, kMaxHeads);
  if (heads.empty()) keys.refuse("has no num_attention_heads");
  model.heads = *std::ranges::max_element(heads);
  if (model.heads == 0) keys.refuse("num_attention_heads is 0");

  // A file that states its heads but not those of keys means as many.
  const Names kv_names = {"num_key_value_heads", "num_kv_heads", "n_head_kv",
                          "multi_query_group_num"};
  std::vector<int> kv;
  if (keys.states(kv_names) || !keys.states(head_names)) kv = keys.integers(kv_names, 0, kMaxHeads);
  const auto nested = keys.object({"attn_config"});
  if (kv.empty() && nested) kv = nested->integers({"kv_n_heads"}, 0, kMaxHeads);
  // Falcon's 7B has one key head, which its config does not count.
  const bool one_key_head = facts.architecture->has(Trait::multi_query) &&
                            keys.flag({"multi_query"}).value_or(false) &&
                            !keys.flag({"new_decoder_architecture"}).value_or(false);
  if (one_key_head) kv = {1};
  if (kv.empty()) kv = heads;
  facts.layer_keys.kv_heads = kv;

  const bool latent =
      facts.architecture->has(Trait::latent_attention) && keys.has({"kv_lora_rank"});
  const auto head = keys.integer({"head_dim", "kv_channels", "attention_dim"}, 1, kMaxHead);
  const auto rotated = keys.integer({"qk_rope_head_dim"}, 0, kMaxHead);
  if (latent && rotated) {
    // One compressed vector and one rotated key per token, whatever the number of heads.
    model.latent_attention = true;
    model.value_length = keys.required({"kv_lora_rank"}, 1, kMaxHead, 0);
    model.key_length = model.value_length + int(*rotated);
    facts.layer_keys.kv_heads = {1};
    return;
  }
  if (rotated && keys.has({"qk_nope_head_dim"})) {
    model.key_length = int(*rotated + *keys.integer({"qk_nope_head_dim"}, 0, kMaxHead));
    model.value_length = keys.required({"v_head_dim"}, 1, kMaxHead, model.key_length);
    if (model.key_length == 0) keys.refuse("qk_rope_head_dim is 0");
    return;
  }
  model.key_length = int(head.value_or(model.embedding / model.heads));
  keys.refuse_if(
      model.key_length < 1 || model.key_length > kMaxHead,
      cat("num_attention_heads is ", model.heads, " for a hidden_size of ", model.embedding));
  model.value_length = keys.required({"v_head_dim"}, 1, kMaxHead, model.key_length);
}

// Which layers have a window or keep a state instead of keys.
void read_layer_types(const Keys& keys, LayerKeys& layers) {
  const auto count = std::size_t(layers.layers);
  const std::vector<std::string> types = keys.texts({"layer_types", "layers_block_type"});
  keys.refuse_if(!types.empty() && types.size() < count,
                 cat("layer_types has ", types.size(), " entries for ", count, " layers"));
  for (const std::string& type : types) {
    layers.windowed.push_back(has_word("sliding_attention chunked_attention", type));
    layers.recurrent.push_back(has_word("linear_attention conv mamba recurrent", type));
  }
  const auto attending = keys.integers({"attn_layer_indices", "full_attn_idxs"}, 0, kMaxLayers);
  if (types.empty() && !attending.empty()) {
    layers.recurrent.assign(count, true);
    for (const int i : attending) {
      if (i < layers.layers) layers.recurrent[std::size_t(i)] = false;
    }
  }
  if (!has(layers.recurrent, true)) {
    layers.recurrent.clear();
    return;
  }
  // llama.cpp's files say it by the number of KV heads.
  if (layers.kv_heads.size() != 1) return;
  layers.kv_heads.resize(layers.recurrent.size(), layers.kv_heads[0]);
  for (std::size_t i = 0; i < layers.recurrent.size(); ++i) {
    if (layers.recurrent[i]) layers.kv_heads[i] = 0;
  }
}

void read_layers(const Keys& keys, Facts& facts) {
  LayerKeys& layers = facts.layer_keys;
  layers.layers =
      keys.required({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, 1, kMaxLayers, 0);
  layers.shared_kv_layers = keys.integer_or({"num_kv_shared_layers"}, 0, kMaxLayers, 0);
  layers.leading_dense = keys.integer_or({"first_k_dense_replace"}, 0, kMaxLayers, 0);
  layers.train_length = facts.context_length;
  layers.sliding_window = keys.integer_or(
      {"sliding_window", "attention_chunk_size", "sliding_window_size"}, 0, kMaxContext, -1);
  if (!keys.flag({"use_sliding_window"}).value_or(true)) layers.sliding_window = -1;
  const Names patterns = {"sliding_window_pattern", "_sliding_window_pattern"};
  const json* pattern = keys.find(patterns);
  if (pattern && pattern->is_number()) {
    layers.window_period = keys.integer_or(patterns, 0, kMaxLayers, -1);
  }
  layers.unrotated_period = keys.integer_or({"no_rope_layer_interval"}, 0, kMaxLayers, -1);
  for (const int v : keys.integers({"no_rope_layers"}, 0, 1)) layers.rotated.push_back(v != 0);
  layers.attention_period = keys.integer_or({"full_attention_interval"}, 1, kMaxLayers, -1);
  for (const std::string& type : keys.texts({"indexer_types"})) {
    layers.indexed.push_back(type == "full");
  }
  // Granite: "nope" switches the rotation off.
  layers.rope_finetuned = keys.text({"position_embedding_type"}) != "nope";
  read_layer_types(keys, layers);
}

// Layers that attend to everything may have heads of their own (Gemma 4): theirs are the facts that
// count, since only their cache grows with the text.
void read_full_heads(const Keys& keys, Facts& facts) {
  LayerKeys& layers = facts.layer_keys;
  const auto windowed = [&](std::size_t i) {
    return i < layers.windowed.size() && layers.windowed[i];
  };
  auto head = keys.integer({"global_head_dim"}, 1, kMaxHead);
  auto kv_heads = keys.integer({"num_global_key_value_heads"}, 1, kMaxHeads);
  if (const auto overrides = keys.object({"per_layer_config"})) {
    for (const auto& [index, unused] : overrides->items()) {
      const bool number = !index.empty() && index.size() <= 4 &&
                          index.find_first_not_of("0123456789") == std::string::npos;
      if (!number || windowed(std::size_t(std::stoi(index)))) continue;
      const auto layer = overrides->object({index.c_str()});
      if (!layer) continue;
      if (!head) head = layer->integer({"head_dim"}, 1, kMaxHead);
      if (!kv_heads) kv_heads = layer->integer({"num_key_value_heads"}, 1, kMaxHeads);
    }
  }
  if (head) facts.model.key_length = facts.model.value_length = int(*head);
  if (!kv_heads || layers.windowed.empty()) return;
  if (layers.kv_heads.size() == 1) {
    layers.kv_heads.resize(layers.windowed.size(), layers.kv_heads[0]);
  }
  for (std::size_t i = 0; i < layers.kv_heads.size(); ++i) {
    if (!windowed(i)) layers.kv_heads[i] = int(*kv_heads);
  }
}

// The settings of layers that attend to everything.
std::optional<Keys> rope_keys(const Keys& keys) {
  // transformers prefers the old name where both are there and it is not empty.
  auto rope = keys.object({"rope_scaling"});
  if (!rope || rope->empty()) rope = keys.object({"rope_parameters"});
  const bool per_layer = rope && rope->has({"full_attention", "sliding_attention"});
  return per_layer ? rope->object({"full_attention"}) : rope;
}

void read_rotation(const Keys& keys, const std::optional<Keys>& rope, Facts& facts) {
  Geometry& geometry = facts.model.geometry;
  geometry.pairing = facts.architecture->huggingface_pairing;

  const Names usual = {"rope_theta", "global_rope_theta"}, older = {"rotary_emb_base", "rope_base"};
  std::optional<double> theta = rope ? rope->real({"rope_theta"}) : std::nullopt;
  const bool is_older = !theta && !keys.states(usual) && keys.states(older);
  if (!theta) theta = keys.real(is_older ? older : usual);
  if (const auto nested = keys.object({"attn_config"}); !theta && nested) {
    theta = nested->real({"rope_theta"});
  }
  geometry.base = theta.value_or(10000) * keys.real({"rope_ratio"}).value_or(1);
  check_base(keys.where(), is_older ? "rotary_emb_base" : "rope_theta", geometry.base);

  const std::int64_t head = facts.model.key_length;
  const auto rotary = keys.integer({"rotary_dim", "qk_rope_head_dim"}, INT32_MIN, INT32_MAX);
  std::optional<double> partial = rope ? rope->real({"partial_rotary_factor"}) : std::nullopt;
  if (!partial) {
    partial = keys.real({"partial_rotary_factor", "rotary_pct", "rope_pct", "rope_percent"});
  }
  if (rotary) {
    check_rotary_dim(keys.where(), keys.has({"rotary_dim"}) ? "rotary_dim" : "qk_rope_head_dim",
                     *rotary, head);
    geometry.rotary_dim = int(*rotary);
    return;
  }
  const double part = partial.value_or(1);
  keys.refuse_if(!(part > 0 && part <= 1),
                 cat("partial_rotary_factor is ", part, ", not a number above 0 and up to 1"));
  const std::string name =
      part == 1 ? "head_dim" : cat("partial_rotary_factor ", part, " of head_dim ", head);
  const bool design = rope && rope->text({"rope_type", "type"}) == "proportional";
  const std::int64_t rotated = design ? head : std::int64_t(double(head) * part);
  check_rotary_dim(keys.where(), name, rotated, head);
  geometry.rotary_dim = int(rotated);
  if (design) {
    // The first part of the pairs turns at the speed of the whole head, the rest never.
    const auto pairs = std::size_t(head / 2);
    facts.factors.assign(pairs, 1e30);
    std::fill_n(facts.factors.begin(), std::size_t(part * double(pairs)), 1.0);
    facts.factors_are_design = true;
  }
}

double yarn_attention_scale(const Keys& rope, double factor) {
  if (const auto given = rope.real({"attention_factor"})) return *given;
  const double mscale = rope.real({"mscale"}).value_or(0);
  const double all_dims = rope.real({"mscale_all_dim"}).value_or(0);
  if (mscale == 0 || all_dims == 0) return yarn_temperature(factor);
  return yarn_temperature(factor, mscale) / yarn_temperature(factor, all_dims);
}

void read_yarn(const Keys& rope, Facts& facts) {
  const auto positive = [&](const char* name, double otherwise) {
    const double value = rope.real({name}).value_or(0);
    return value == 0 ? otherwise : value;
  };
  ScalingRule& rule = facts.rule;
  rule.beta_fast = positive("beta_fast", 32);
  rule.beta_slow = positive("beta_slow", 1);
  rule.truncate = rope.flag({"truncate"}).value_or(true);
  rule.attention_scale = yarn_attention_scale(rope, facts.model.scaling.factor);
  check_attention_scale(rope.where(), "attention_factor", rule.attention_scale);
}

void read_longrope(const Keys& rope, Facts& facts) {
  DeclaredScaling& scaling = facts.model.scaling;
  const int rotary_dim = facts.model.geometry.rotary_dim;
  scaling.short_factor = rope.reals({"short_factor", "factors"});
  scaling.long_factor = rope.reals({"long_factor", "factors"});
  check_factor_list(rope.where(), "short_factor", scaling.short_factor, rotary_dim);
  check_factor_list(rope.where(), "long_factor", scaling.long_factor, rotary_dim);
  double scale = 1;
  if (scaling.factor > 1 && scaling.original_length > 1) {
    scale = std::sqrt(1 + std::log(scaling.factor) / std::log(double(scaling.original_length)));
  }
  facts.rule.attention_scale = rope.real({"attention_factor", "short_mscale"}).value_or(scale);
  check_attention_scale(rope.where(), "attention_factor", facts.rule.attention_scale);
}

void read_scaling(const Keys& keys, const std::optional<Keys>& given, Facts& facts) {
  DeclaredScaling& scaling = facts.model.scaling;
  scaling.type = "none";
  // Phi keeps the original window outside, and there it counts first.
  const auto outer = keys.integer({"original_max_position_embeddings"}, 1, kMaxContext);
  if (outer) scaling.original_length = *outer;
  if (!given) return;
  const Keys& rope = *given;
  std::string type = rope.text({"rope_type", "type"});
  if (type == "mrrope" && rope.has({"rungs"})) {
    unsupported(cat(rope.where(), " has a plan for every length, which only vLLM's plugin runs"),
                "give the folder that it was exported from");
  }
  // mrrope: what mrrope export --to hf-mrrope writes, one list in place of two.
  if (type == "su" || type == "mrrope") type = "longrope";
  if (type.empty() || type == "default" || type == "mrope") type = "none";
  unsupported_if(!has_word("none linear dynamic yarn llama3 longrope proportional xdrope", type),
                 cat(rope.where(), ": the rope_type ", shown(type), " is not known"),
                 "plan from numbers instead: --rotary-dim N --rope-freq-base B --train-ctx LENGTH");
  const auto inner = rope.integer({"original_max_position_embeddings"}, 1, kMaxContext);
  if (!outer && inner) scaling.original_length = *inner;
  facts.rule.original_stated = scaling.original_length > 0;
  if (type == "none") return;

  if (scaling.original_length == 0 && type != "linear") {
    scaling.original_length = facts.context_length;
  }
  std::optional<double> factor = rope.real({"factor"});
  if (!factor && (type == "yarn" || type == "longrope")) {
    factor = std::max(1.0, double(facts.context_length) / double(scaling.original_length));
  }
  if (!factor && (type == "linear" || type == "llama3")) rope.refuse("has no factor");
  scaling.factor = factor.value_or(1);
  check_factor(rope.where(), "factor", scaling.factor);
  scaling.type = type == "xdrope" ? "dynamic" : type;
  scaling.trained = scaling.type != "dynamic";

  if (type == "yarn" || type == "llama3") {
    scaling.beta_fast = rope.real({"beta_fast", "high_freq_factor"});
    scaling.beta_slow = rope.real({"beta_slow", "low_freq_factor"});
  }
  if (type == "yarn") read_yarn(rope, facts);
  if (type == "longrope") read_longrope(rope, facts);
  if (type == "llama3") {
    facts.rule.beta_slow = rope.real({"low_freq_factor"}).value_or(1);
    facts.rule.beta_fast = rope.real({"high_freq_factor"}).value_or(4);
  }
  const double low = facts.rule.beta_slow;
  const double high = facts.rule.beta_fast;
  if (!(low > 0 && high > low && high <= 1e9)) {
    const bool llama3 = type == "llama3";
    rope.refuse(cat(llama3 ? "low_freq_factor is " : "beta_slow is ", low,
                    llama3 ? " and high_freq_factor is " : " and beta_fast is ", high,
                    ", not two rising positive numbers"));
  }
  // Hunyuan: the larger base of NTK, fixed.
  const double alpha = rope.real({"alpha"}).value_or(0);
  Geometry& geometry = facts.model.geometry;
  if (scaling.type == "dynamic" && alpha > 0) {
    geometry.base *= std::pow(alpha, geometry.rotary_dim / (geometry.rotary_dim - 2.0));
    check_base(rope.where(), "alpha", geometry.base);
    scaling.trained = true;
  }
  if (scaling.factor == 1 && type != "longrope" && type != "proportional" && type != "dynamic") {
    scaling.type = "none";
    scaling.trained = facts.rule.attention_scale != 1;
  }
}

}  // namespace

Facts config_facts(const json& config, const std::string& where) {
  corrupt_if(!config.is_object(), where, "is not a JSON object",
             "give the config.json of a Hugging Face model");
  const Keys root(config, where, ErrorKind::corrupt, kDamaged);
  const TextModel text = text_model(root);
  const json defaults = config_defaults(text.model_type, text.nested);
  const Keys keys = text.keys.or_else(defaults);
  Facts facts;
  facts.where = where;
  facts.architecture = &architecture_of(keys, text.model_type);
  Model& model = facts.model;
  model.format = "huggingface";
  model.name = printable(root.text({"_name_or_path", "name_or_path"}));
  facts.context_length = keys.required(
      {"max_position_embeddings", "n_positions", "seq_length", "max_seq_len", "n_ctx"}, 1,
      kMaxContext, 0);
  model.vocabulary = keys.integer_or({"vocab_size", "padded_vocab_size"}, 0, kMaxVocabulary, 0);
  read_heads(keys, facts);
  read_layers(keys, facts);
  read_full_heads(keys, facts);

  const std::optional<Keys> rope = rope_keys(keys);
  read_rotation(keys, rope, facts);
  if (rope) model.mrope_sections = rope->integers({"mrope_section", "xdrope_section"}, 0, kMaxHead);
  read_scaling(keys, rope, facts);
  return facts;
}

}  // namespace mrrope
