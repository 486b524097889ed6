// SPDX-License-Identifier: Apache-2.0
// The keys of a GGUF file as llama.cpp 0.5.0 reads them.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "core/methods.h"
#include "formats/facts.h"

namespace mrrope {
namespace {

// Keys of one architecture: "llama." + name.
struct Keys {
  const GgufPart& file;
  std::string prefix;

  std::string name(std::string_view key) const { return prefix + std::string(key); }
  bool has(std::string_view key) const { return file.find(name(key)) != nullptr; }

  // "llama.KEY is 0".
  template <typename... Parts>
  [[noreturn]] void refuse(std::string_view key, const Parts&... parts) const {
    corrupt(file.name(), cat(name(key), parts...));
  }

  [[noreturn]] void refuse_absent(std::string_view key) const {
    corrupt(file.name(), cat("has no key ", name(key)));
  }

  int required(std::string_view key, std::int64_t low, std::int64_t high) const {
    const auto value = file.integer(name(key), low, high);
    if (!value) refuse_absent(key);
    return int(*value);
  }
  int integer(std::string_view key, std::int64_t low, std::int64_t high, int otherwise) const {
    return int(file.integer(name(key), low, high).value_or(otherwise));
  }
  double real(std::string_view key, double otherwise) const {
    return file.real(name(key)).value_or(otherwise);
  }
  std::vector<std::int64_t> integers(std::string_view key, int low, int high) const {
    return file.integers(name(key), low, high);
  }
  // An array of flags; empty if absent or not an array.
  std::vector<bool> flags(std::string_view key) const {
    const GgufKeyValue* kv = file.find(name(key));
    if (!kv || kv->type != GgufType::array) return {};
    std::vector<bool> out;
    for (const std::int64_t v : integers(key, INT32_MIN, INT32_MAX)) out.push_back(v > 0);
    return out;
  }
};

const Architecture& architecture_of(const GgufPart& file) {
  const auto type = file.text("general.type");
  if (type && *type != "model") {
    unsupported(cat(file.name(), ": is of the type ", shown(*type), ", not a whole model"),
                "give the GGUF file of the model itself");
  }
  const auto name = file.text("general.architecture");
  if (!name) corrupt(file.name(), "has no key general.architecture");
  return supported(find_architecture(*name), file.name(), "architecture", *name);
}

void read_heads(const Keys& keys, Facts& facts) {
  Model& model = facts.model;
  model.embedding = keys.required("embedding_length", 1, kMaxWidth);
  const auto heads = keys.integers("attention.head_count", 0, kMaxHeads);
  if (heads.empty()) keys.refuse_absent("attention.head_count");
  model.heads = int(*std::ranges::max_element(heads));
  if (model.heads == 0) keys.refuse("attention.head_count", " is 0");

  auto kv_heads = keys.integers("attention.head_count_kv", 0, kMaxHeads);
  if (kv_heads.empty()) kv_heads = heads;
  facts.layer_keys.kv_heads.assign(kv_heads.begin(), kv_heads.end());

  const auto head_size = [&](const char* key) {
    if (keys.has(key)) return keys.required(key, 1, kMaxHead);
    if (model.embedding / model.heads == 0 || model.embedding / model.heads > kMaxHead) {
      keys.refuse("attention.head_count", " is ", model.heads, " for ",
                  keys.name("embedding_length"), " ", model.embedding);
    }
    return model.embedding / model.heads;
  };
  model.key_length = head_size("attention.key_length");
  model.value_length = head_size("attention.value_length");
  // Files converted before llama.cpp cached the compressed vector have no such key.
  model.latent_attention =
      facts.architecture->has(Trait::latent_attention) && keys.has("attention.key_length_mla");
}

void read_layers(const Keys& keys, Facts& facts) {
  LayerKeys& layers = facts.layer_keys;
  const auto count = [&](const char* key, int otherwise) {
    return keys.integer(key, 0, kMaxLayers, otherwise);
  };
  layers.layers = keys.required("block_count", 1, kMaxLayers);
  layers.draft_layers = count("nextn_predict_layers", 0);
  layers.loops = count("num_loops", 1);
  layers.shared_kv_layers = count("attention.shared_kv_layers", 0);
  layers.leading_dense = count("leading_dense_block_count", 0);
  layers.train_length = facts.context_length;
  layers.sliding_window = keys.integer("attention.sliding_window", 0, kMaxContext, -1);
  layers.windowed = keys.flags("attention.sliding_window_pattern");
  if (layers.windowed.empty()) layers.window_period = count("attention.sliding_window_pattern", -1);
  layers.rotated = keys.flags("attention.rope_pattern");
  layers.recurrent = keys.flags("attention.recurrent_layers");
  layers.attention_period = count("full_attention_interval", -1);
  layers.indexed = keys.flags("attention.indexer.types");
  if (layers.indexed.empty()) layers.indexed = keys.flags("attention.compress_ratios");
}

// llama.cpp's net effect on cos and sin; its graph cancels the term that ggml adds by itself.
double yarn_attention_scale(const Keys& keys, const Facts& facts, double factor) {
  double all_dims = keys.real("rope.scaling.yarn_log_multiplier", 0);
  if (all_dims == 0) return yarn_temperature(factor);
  if (facts.architecture->has(Trait::multiplier_cancels)) return 1;
  if (facts.architecture->has(Trait::multiplier_tenth)) all_dims /= 0.1;
  return yarn_temperature(factor) / yarn_temperature(factor, all_dims);
}

void read_scaling(const Gguf& gguf, const Keys& keys, Facts& facts) {
  const GgufPart& file = keys.file;
  DeclaredScaling& scaling = facts.model.scaling;
  ScalingRule& rule = facts.rule;
  const std::string type = file.text(keys.name("rope.scaling.type")).value_or("linear");
  if (type != "none" && type != "linear" && type != "yarn" && type != "longrope") {
    keys.refuse("rope.scaling.type", " is ", shown(type), ", not none, linear, yarn or longrope");
  }
  const char* factor_key =
      keys.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  double factor = keys.real(factor_key, 0);
  if (factor == 0) factor = 1;  // as llama.cpp reads it
  check_factor(file.name(), keys.name(factor_key), factor);
  scaling.factor = type == "none" || type == "longrope" ? 1 : factor;
  scaling.type = scaling.factor == 1 ? "none" : type;
  scaling.original_length = keys.integer("rope.scaling.original_context_length", 1, kMaxContext, 0);
  rule.original_stated = scaling.original_length > 0;

  const int rotary_dim = facts.model.geometry.rotary_dim;
  scaling.long_factor = gguf.rope_factors(kRopeLong);
  scaling.short_factor = gguf.rope_factors(kRopeShort);
  facts.factors = gguf.rope_factors(kRopeFreqs);
  // A graph that ignores the list leaves theta unchanged.
  if (facts.architecture->factors == FactorSupport::ignored) facts.factors.clear();
  // Where full layers rotate a part of what windowed ones do, they read the front of the list.
  const auto listed = std::size_t(facts.architecture->rotary_divisor) * std::size_t(rotary_dim / 2);
  if (facts.factors.size() == listed) facts.factors.resize(std::size_t(rotary_dim / 2));
  if (!facts.factors.empty()) {
    check_factor_list(file.name(), kRopeFreqs, facts.factors, rotary_dim);
    facts.factors_are_design =
        facts.factors.back() >= 1e29 &&
        std::ranges::all_of(facts.factors, [](double f) { return f == 1 || f >= 1e29; });
    scaling.long_factor.clear();
    scaling.short_factor.clear();
  } else if (!scaling.long_factor.empty() || !scaling.short_factor.empty()) {
    check_factor_list(file.name(), kRopeLong, scaling.long_factor, rotary_dim);
    check_factor_list(file.name(), kRopeShort, scaling.short_factor, rotary_dim);
    scaling.type = "longrope";
    if (scaling.original_length > 0) {
      scaling.factor = std::max(1.0, double(facts.context_length) / scaling.original_length);
    }
  }

  rule.attention_scale = keys.real("rope.scaling.attn_factor", 1);
  check_attention_scale(file.name(), keys.name("rope.scaling.attn_factor"), rule.attention_scale);
  if (scaling.type == "yarn") {
    if (facts.architecture->has(Trait::reads_yarn_betas)) {
      rule.beta_fast = keys.real("rope.scaling.yarn_beta_fast", 32);
      rule.beta_slow = keys.real("rope.scaling.yarn_beta_slow", 1);
    }
    if (!(rule.beta_slow > 0 && rule.beta_fast > rule.beta_slow && std::isfinite(rule.beta_fast))) {
      keys.refuse("rope.scaling.yarn_beta_fast", " is ", rule.beta_fast, " and ",
                  keys.name("rope.scaling.yarn_beta_slow"), " is ", rule.beta_slow,
                  ", not two rising positive numbers");
    }
    const double ext = facts.architecture->has(Trait::reads_yarn_mix)
                           ? keys.real("rope.scaling.yarn_ext_factor", 1)
                           : 1;
    if (!(ext <= 1)) keys.refuse("rope.scaling.yarn_ext_factor", " is ", ext);
    rule.ext_factor = ext < 0 ? 1 : ext;  // negative: not set
    rule.attention_scale *= yarn_attention_scale(keys, facts, scaling.factor);
    check_attention_scale(file.name(), keys.name("rope.scaling.yarn_log_multiplier"),
                          rule.attention_scale);
  }
  scaling.trained = scaling.type != "none" || rule.attention_scale != 1;
}

}  // namespace

Facts gguf_facts(const Gguf& gguf) {
  const GgufPart& file = gguf.first();
  Facts facts;
  facts.where = file.name();
  facts.architecture = &architecture_of(file);
  const Architecture& architecture = *facts.architecture;
  const Keys keys{file, cat(architecture.name, ".")};
  Model& model = facts.model;
  model.format = "gguf";
  if (const auto name = file.find("general.name"); name && name->type == GgufType::string) {
    if (const auto* text = std::get_if<std::string>(&name->value)) model.name = printable(*text);
  }
  facts.context_length = keys.required("context_length", 1, kMaxContext);
  read_heads(keys, facts);
  read_layers(keys, facts);
  facts.layer_keys.rope_finetuned =
      file.boolean(keys.name("rope.scaling.finetuned")).value_or(true);

  const GgufKeyValue* tokens = file.find("tokenizer.ggml.tokens");
  model.vocabulary = keys.integer("vocab_size", 0, kMaxVocabulary, 0);
  if (model.vocabulary == 0 && tokens && tokens->type == GgufType::array) {
    model.vocabulary = int(tokens->count);
  }

  Geometry& geometry = model.geometry;
  int rotary = keys.integer("rope.dimension_count", INT32_MIN, INT32_MAX, model.key_length);
  check_rotary_dim(file.name(), keys.name("rope.dimension_count"), rotary, model.key_length);
  rotary /= architecture.rotary_divisor;
  check_rotary_dim(file.name(), keys.name("rope.dimension_count"), rotary, model.key_length);
  geometry.rotary_dim = rotary;
  geometry.base = keys.real("rope.freq_base", 10000);
  check_base(file.name(), keys.name("rope.freq_base"), geometry.base);
  const auto sections = keys.integers("rope.dimension_sections", 0, kMaxHead);
  const bool has_sections = sections.size() >= 2 && sections[0] > 0 && sections[1] > 0;
  if (architecture.has(Trait::mrope) && has_sections) {
    model.mrope_sections.assign(sections.begin(), sections.end());
  }
  geometry.pairing = gguf_pairing(architecture, has_sections);
  read_scaling(gguf, keys, facts);
  const double alpha = keys.real("rope.scaling.alpha", 0);
  if (alpha > 0 && architecture.has(Trait::alpha_in_base)) {
    geometry.base *= std::pow(alpha, rotary / double(rotary - 2));
    check_base(file.name(), keys.name("rope.scaling.alpha"), geometry.base);
  }
  for (const GgufPart& part : gguf.parts) {
    model.files.push_back(part.path);
    for (const GgufTensor& tensor : part.tensors) model.weight_bytes += tensor.size;
  }
  return facts;
}

}  // namespace mrrope
