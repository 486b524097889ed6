// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "base/text.h"
#include "core/methods.h"
#include "export/export.h"
#include "formats/facts.h"

namespace mrrope::exporting {

namespace {

// Two lists of angles are equal if every pair agrees to this: files hold floats.
constexpr double kExact = 1e-6;

constexpr const char* kOtherWays =
    ", which llama.cpp computes itself, or run this plan with mrrope generate or mrrope serve";

// Everything the decision depends on.
struct Case {
  const Gguf& gguf;
  const Model& model;
  const Plan& plan;
  const GgufOptions& options;
  const Architecture& architecture;
  Model shipped;        // the model with the vendor's scaling
  bool on_top = false;  // the plan keeps the scaling that the file declares; else it is removed
  bool windows_apart = false;  // layers that plans do not change but the temperature key does
};

void cannot_run_if(bool impossible, const Case& c, const std::string& why,
                   const std::string& hint) {
  if (!impossible) return;
  unsupported(cat(shown(c.model.path.string()), ": stock llama.cpp cannot run this plan on ",
                  c.architecture.name, ": ", why),
              hint);
}

bool all_close(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::abs(x / y - 1) < kExact; });
}

Case make_case(const Gguf& gguf, const Model& model, const Plan& plan, const GgufOptions& options) {
  const Architecture* architecture = find_architecture(model.architecture);
  refuse_if(!architecture || model.format != "gguf",
            cat(shown(model.path.string()), " is not a GGUF file"),
            "export it with --to hf, or convert it with llama.cpp's convert_hf_to_gguf.py");
  check_made_for(plan.geometry(), model);
  Case c{gguf, model, plan, options, *architecture, finish_model(gguf_facts(gguf), false)};
  const Geometry& now = plan.geometry();
  const Geometry& then = c.shipped.geometry;
  c.on_top = now.trained_factor == then.trained_factor &&
             now.trained_attention_scale == then.trained_attention_scale;
  c.windows_apart = has_windows_apart(model);
  return c;
}

// The divisors that replace the file's own list, so that theta becomes the plan's.
std::vector<double> divisors(const Case& c, bool lists) {
  const std::vector<double>& trained = c.plan.geometry().trained_factor;
  std::vector<double> own =
      lists ? c.shipped.scaling.short_factor : c.gguf.rope_factors(kRopeFreqs);
  if (c.architecture.factors == FactorSupport::ignored) own.clear();
  const std::vector<double>& below = c.on_top ? own : trained;
  std::vector<double> out = c.plan.factor();
  for (std::size_t i = 0; i < out.size() && !below.empty(); ++i) out[i] *= below[i];
  // Where full layers read the front of a longer list, its end stays.
  const std::size_t entries = out.size() * std::size_t(c.architecture.rotary_divisor);
  while (out.size() < entries) out.push_back(out.size() < own.size() ? own[out.size()] : 1);
  return out;
}

// ---- keys -------------------------------------------------------------------------------------

using Keys = std::map<std::string, GgufKeyOut>;  // by name without the architecture

// The plan in llama.cpp's keys for linear scaling or another base. Empty if it is neither.
Keys native_keys(const Case& c) {
  const Geometry& g = c.plan.geometry();
  const std::vector<double>& f = c.plan.factor();
  if (all_close(f, std::vector<double>(f.size(), f[0]))) {
    return {{"rope.scaling.type", text_key("", "linear")},
            {"rope.scaling.factor", f32_key("", float(f[0]))}};
  }
  std::vector<double> powers(f.size(), 1.0);
  for (std::size_t i = 1; i < f.size(); ++i) powers[i] = std::pow(f[1], double(i));
  // Windowed layers may take their base from the same key.
  if (!all_close(f, powers) || c.windows_apart) return {};
  const double base = g.base * std::pow(f[1], g.rotary_dim / 2.0);
  return {{"rope.freq_base", f32_key("", float(base))}};
}

// The plan in llama.cpp's keys for YaRN. llama.cpp reads the betas only for a few architectures and
// uses 32 and 1 for the others, so the ramp has a fixed width, and the original length moves it.
// Empty if the plan is not such a YaRN.
Keys yarn_keys(const Plan& plan) {
  const Geometry& g = plan.geometry();
  const double scale = plan.extension().scale;
  const auto original =
      std::llround(double(g.train_length) / plan.extension().parameters.beta_slow.value_or(1));
  const YarnRamp ramp = yarn_ramp(g.rotary_dim, g.base, double(original), 32, 1);
  std::vector<double> factors(plan.factor().size());
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const double part = ramp.at(double(i));
    factors[i] = 1 / (1 - part + part / scale);
  }
  if (original < 1 || !all_close(plan.factor(), factors)) return {};
  return {{"rope.scaling.type", text_key("", "yarn")},
          {"rope.scaling.factor", f32_key("", float(scale))},
          {"rope.scaling.original_context_length",
           integer_key("", GgufType::u32, std::uint64_t(original))}};
}

// ---- the decision -----------------------------------------------------------------------------

struct Decision {
  GgufEncoding encoding = GgufEncoding::unchanged;
  Keys keys;
  double own_temperature = 1;  // what llama.cpp applies by itself under these keys
};

// The temperature key reaches every rotation, also those of layers that plans leave alone.
void check_temperature(const Case& c, double own_temperature) {
  cannot_run_if(
      c.windows_apart && !(std::abs(c.plan.attention_scale() / own_temperature - 1) < kExact), c,
      cat("its key for the temperature (", significant(c.plan.attention_scale(), 6),
          " here) also affects the sliding-window layers, which the plan leaves unchanged"),
      own_temperature == 1
          ? "make the plan with --attn-coef 0, or use --method yarn, whose own temperature "
            "llama.cpp applies to the right layers"
          : "make the plan with the default --attn-coef 0.1");
}

// Keys alone. `why`: the reason against factors.
Decision decide_keys(const Case& c, const std::string& why) {
  const std::string also = why.empty() ? "" : why + "; and ";
  cannot_run_if(c.architecture.has(Trait::scale_in_scores), c,
                "llama.cpp's keys for scaling also change the scale of its attention scores",
                "run it with mrrope generate, which applies the plan in the graph");
  const std::string& type = c.shipped.scaling.type;
  const bool scaled = type == "linear" || type == "yarn" || type == "longrope";
  cannot_run_if(c.on_top && (scaled || !c.plan.geometry().trained_factor.empty()), c,
                cat(also, "its keys already hold the vendor's own scaling (", type,
                    "), and they can hold only one"),
                "make the plan with --replace-scaling, or run it with mrrope generate");
  cannot_run_if(
      c.windows_apart && c.architecture.has(Trait::keys_reach_windows), c,
      cat(also, "its keys also change the sliding-window layers, which plans leave unchanged"),
      "for pi and yarn use llama.cpp's own flags: --to commands prints them; "
      "mrrope generate runs every plan");
  Decision d;
  d.encoding = GgufEncoding::keys;
  d.keys = native_keys(c);
  if (!d.keys.empty()) {
    check_temperature(c, 1);
    return d;
  }
  d.keys = yarn_keys(c.plan);
  cannot_run_if(d.keys.empty(), c,
                why.empty() ? "--native was given, and llama.cpp has no keys for this plan" : why,
                cat("give --method yarn", kOtherWays));
  d.own_temperature = yarn_temperature(c.plan.extension().scale);
  check_temperature(c, d.own_temperature);
  return d;
}

Decision decide(const Case& c) {
  if (is_identity(c.plan) && c.on_top) return {};
  if (c.options.native) return decide_keys(c, "");
  Decision d;
  const bool longrope = c.on_top && c.shipped.scaling.type == "longrope";
  if (c.architecture.factors == FactorSupport::long_short ||
      (c.architecture.factors == FactorSupport::used && longrope)) {
    d.encoding = GgufEncoding::lists;
  } else if (c.architecture.factors == FactorSupport::used) {
    d.encoding = GgufEncoding::factors;
  } else if (c.architecture.has(Trait::like_llama)) {
    check_relabel(c.gguf, c.model, c.architecture);
    d.encoding = GgufEncoding::relabelled;
  } else {
    const bool refused = c.architecture.factors == FactorSupport::refused;
    return decide_keys(c, cat(refused ? "its loader refuses a file with factors"
                                      : "its graph silently ignores factors",
                              ", and this plan is neither linear",
                              c.windows_apart ? "" : ", nor another base", ", nor YaRN"));
  }
  check_temperature(c, 1);
  return d;
}

// ---- the files --------------------------------------------------------------------------------

std::string output_architecture(const Case& c, GgufEncoding encoding) {
  return encoding == GgufEncoding::relabelled ? "llama" : std::string(c.architecture.name);
}

// The key that replaces or joins those of the file, all but the architecture's name filled in.
Keys new_keys(const Case& c, const Decision& d, std::optional<float>& attn_factor) {
  Keys keys = d.keys;
  const GgufPart& first = c.gguf.first();
  const std::string prefix = cat(c.architecture.name, ".");
  const GgufKeyValue* old_length = first.find(prefix + "context_length");
  keys["context_length"] =
      integer_key("context_length", old_length->type, std::uint64_t(c.options.length));
  // YaRN's ramp and the attention of Mistral 3 depend on the old window; without this key llama.cpp
  // would use the new one. It also allows undoing the export.
  if (!first.find(prefix + "rope.scaling.original_context_length")) {
    keys.try_emplace(
        "rope.scaling.original_context_length",
        integer_key("", GgufType::u32,
                    std::uint64_t(*first.integer(prefix + "context_length", 1, kMaxContext))));
  }
  if (d.encoding == GgufEncoding::unchanged) return keys;

  const double before = c.on_top ? first.real(prefix + "rope.scaling.attn_factor").value_or(1)
                                 : c.plan.geometry().trained_attention_scale;
  const double temperature = before * c.plan.attention_scale() / d.own_temperature;
  if (std::abs(temperature - 1) > 1e-12 || first.find(prefix + "rope.scaling.attn_factor")) {
    attn_factor = float(temperature);
    keys["rope.scaling.attn_factor"] = f32_key("", *attn_factor);
  }
  if (!c.on_top && keys.find("rope.scaling.type") == keys.end()) {
    keys["rope.scaling.type"] = text_key("", "none");
  }
  return keys;
}

// Keys of the vendor's scaling, removed when the scaling is replaced.
bool is_old_scaling(std::string_view name) {
  return name == "rope.scaling.factor" || name == "rope.scale_linear" ||
         name.substr(0, 18) == "rope.scaling.yarn_";
}

// Those of the first part, without what says that there are others.
std::vector<GgufKeyOut> keys_of(const Case& c, GgufEncoding encoding, Keys keys) {
  const GgufPart& part = c.gguf.first();
  std::vector<GgufKeyOut> out;
  const std::string from = cat(c.architecture.name, ".");
  const std::string to = output_architecture(c, encoding) + ".";
  const bool writes_scaling = keys.count("rope.scaling.type") != 0;
  for (const GgufKeyValue& record : part.key_values) {
    if (record.key.rfind("split.", 0) == 0) continue;
    if (record.key == "general.architecture") {
      out.push_back(text_key(record.key, output_architecture(c, encoding)));
      continue;
    }
    if (record.key.rfind(from, 0) != 0) {
      out.push_back(copied(part, record, record.key));
      continue;
    }
    const std::string name = record.key.substr(from.size());
    const auto fresh = keys.find(name);
    if (fresh != keys.end()) {
      out.push_back(std::move(fresh->second));
      out.back().key = to + name;
      keys.erase(fresh);
    } else if (!(writes_scaling && is_old_scaling(name))) {
      out.push_back(copied(part, record, to + name));
    }
  }
  for (auto& [name, kv] : keys) {
    out.push_back(std::move(kv));
    out.back().key = to + name;
  }
  return out;
}

std::vector<GgufTensorOut> tensors_of(const Case& c, const GgufPart& part, const Decision& d,
                                      std::vector<GgufTensorOut>& fresh) {
  std::vector<GgufTensorOut> out;
  for (const GgufTensor& tensor : part.tensors) {
    const auto is_new =
        std::ranges::find_if(fresh, [&](const GgufTensorOut& t) { return t.name == tensor.name; });
    if (is_new != fresh.end()) {
      out.push_back(std::move(*is_new));
      fresh.erase(is_new);
      continue;
    }
    const bool relabel = d.encoding == GgufEncoding::relabelled;
    const bool replaced = d.encoding != GgufEncoding::unchanged && !c.on_top;  // the vendor's
    if (is_rope_list(tensor.name) && (replaced || relabel)) continue;
    out.push_back(copied(part, tensor));
    if (relabel) out.back() = relabelled(std::move(out.back()), c.model, c.architecture);
  }
  return out;
}

std::vector<float> to_floats(const Case& c, const std::vector<double>& values) {
  std::vector<float> out;
  for (const double v : values) {
    const auto f = float(v);
    cannot_run_if(!(f > 0) || !std::isfinite(f), c,
                  cat("a divisor of ", significant(v, 6), " does not fit a 32-bit float"),
                  "give smaller factors");
    out.push_back(f);
  }
  return out;
}

void cannot_relabel_if(bool odd, const Architecture& from, const std::string& what) {
  if (!odd) return;
  unsupported(cat("a file of architecture ", from.name,
                  " can be written as architecture llama, but this one ", what),
              cat("give --method yarn with --native", kOtherWays));
}

// What follows "blk.12." in the name of a layer's tensor; empty for others.
std::string in_layer(const std::string& name) {
  static const std::regex pattern("blk[.](0|[1-9][0-9]{0,4})[.](.*)");
  std::smatch found;
  return std::regex_match(name, found, pattern) ? found[2].str() : "";
}

std::string llama_name(const std::string& name, const Architecture& from) {
  const std::string rest = in_layer(name);
  if (!from.has(Trait::norm_renamed) || rest != "post_attention_norm.weight") return name;
  return name.substr(0, name.size() - rest.size()) + "ffn_norm.weight";
}

// What both graphs read in the same place.
bool is_shared(const std::string& name, const Architecture& from) {
  static const std::regex outside("(token_embd|output_norm|output)[.]weight");
  static const std::regex inside(
      "(attn_norm|attn_output|ffn_norm|ffn_gate|ffn_up|ffn_down)[.]weight|"
      "attn_(q|k|v|qkv)[.](weight|bias)");
  const std::string rest = in_layer(name);
  if (rest == "attn_output.bias") return from.has(Trait::reads_output_bias);
  return rest.empty() ? std::regex_match(name, outside) : std::regex_match(rest, inside);
}

bool is_fused(const std::string& name) { return in_layer(name).starts_with("attn_qkv."); }
// Whether its rows are queries or keys, or begin with them.
bool is_rotated(const std::string& name) {
  const std::string rest = in_layer(name);
  return rest.starts_with("attn_q.") || rest.starts_with("attn_k.") || is_fused(name);
}

// Rows of a matrix, elements of a bias; 0 if it is neither.
std::uint64_t rows_of(const std::vector<std::uint64_t>& dims) {
  if (dims.empty() || dims.size() > 2) return 0;
  return dims.back();
}

// Heads of queries and keys at the front of the rows of a tensor that is_rotated().
std::uint64_t rotated_heads(const std::string& name, std::uint64_t rows, const Model& model) {
  return is_fused(name) ? std::uint64_t(model.heads) + std::uint64_t(model.kv_heads)
                        : rows / std::uint64_t(model.key_length);
}

}  // namespace

const char* to_string(GgufEncoding encoding) noexcept {
  constexpr const char* kNames[] = {"unchanged", "factors", "lists", "relabelled", "keys"};
  return kNames[std::size_t(encoding)];
}

GgufEncoding gguf_encoding(const Gguf& gguf, const Model& model, const Plan& plan,
                           const GgufOptions& options) {
  return decide(make_case(gguf, model, plan, options)).encoding;
}

GgufExport plan_gguf_export(const Gguf& gguf, const Model& model, const Plan& plan,
                            const GgufOptions& options) {
  const Case c = make_case(gguf, model, plan, options);
  refuse_if(options.length < 1 || options.length > kMaxContext,
            cat("a context of ", options.length, " tokens is out of range"),
            "give --ctx a length below 2^31");
  const Decision d = decide(c);
  GgufExport out;
  out.encoding = d.encoding;
  out.architecture = output_architecture(c, d.encoding);

  std::vector<GgufTensorOut> fresh;
  if (d.encoding == GgufEncoding::lists) {
    out.divisors = to_floats(c, divisors(c, true));
    fresh = {f32_tensor(kRopeLong, out.divisors), f32_tensor(kRopeShort, out.divisors)};
  } else if (d.encoding == GgufEncoding::factors || d.encoding == GgufEncoding::relabelled) {
    out.divisors = to_floats(c, divisors(c, false));
    fresh = {f32_tensor(kRopeFreqs, out.divisors)};
  }
  out.file.path = options.out;
  out.file.alignment = gguf.first().alignment;
  out.file.keys = keys_of(c, d.encoding, new_keys(c, d, out.attn_factor));
  for (const GgufPart& part : gguf.parts) {
    refuse_if(same_file(options.out, part.path),
              cat(shown(options.out.string()), " is the input itself"),
              "give another name with -o: inputs are never changed");
    std::vector<GgufTensorOut> tensors = tensors_of(c, part, d, fresh);
    std::move(tensors.begin(), tensors.end(), std::back_inserter(out.file.tensors));
  }
  std::move(fresh.begin(), fresh.end(), std::back_inserter(out.file.tensors));
  return out;
}

void write_export(const GgufExport& exported, bool replace, const BytesWritten& progress,
                  const GgufVerify& verify) {
  const std::filesystem::path& path = exported.file.path;
  const std::filesystem::path name = path.filename();
  refuse_if(name.empty(), cat(shown(path.string()), " does not name a file"),
            "give -o the name of a file, such as model-128k.gguf");
  if (!replace) refuse_existing(path, "name");
  refuse_input(path);
  Staging staging(path, exported.file.size());
  GgufExport staged = exported;
  staged.file.path = staging.path(name);
  write_gguf(staged.file, progress);
  if (verify) verify(staging, staged);
  staging.publish({name}, replace);
}

void check_relabel(const Gguf& gguf, const Model& model, const Architecture& from) {
  cannot_relabel_if(
      model.geometry.rotary_dim != model.key_length || model.key_length != model.value_length, from,
      cat("rotates ", model.geometry.rotary_dim, " of ", model.key_length,
          " elements of a head, and llama rotates all"));
  const std::string prefix = cat(from.name, ".");
  // Keys that llama's graph reads and this one does not.
  const bool scale = gguf.first().find(prefix + "attention.scale") != nullptr;
  cannot_relabel_if(scale && !from.has(Trait::reads_scale), from,
                    cat("has a key ", prefix, "attention.scale"));
  cannot_relabel_if(gguf.first().integer(prefix + "expert_count", 0, 1 << 20).value_or(0) > 0, from,
                    cat("has a key ", prefix, "expert_count"));
  for (const GgufPart& part : gguf.parts) {
    for (const GgufTensor& tensor : part.tensors) {
      if (is_rope_list(tensor.name)) continue;  // replaced
      const std::string name = llama_name(tensor.name, from);
      cannot_relabel_if(!is_shared(name, from), from, cat("has a tensor ", shown(tensor.name)));
      cannot_relabel_if(name != tensor.name && gguf.find_tensor(name).second, from,
                        cat("has both ", shown(tensor.name), " and ", shown(name)));
      if (!is_rotated(tensor.name)) continue;
      const std::uint64_t rows = rows_of(tensor.dims);
      const std::uint64_t heads = rotated_heads(tensor.name, rows, model);
      const auto head = std::uint64_t(model.key_length);
      corrupt_if(rows == 0 || rows % head != 0 || heads * head > rows, part.name(),
                 cat("tensor ", shown(tensor.name), " has ", tensor.dims.size(), " dimensions and ",
                     rows, " rows, not whole heads of ", head, " rows"));
      cannot_relabel_if(
          is_fused(tensor.name) && rows != (heads + std::uint64_t(model.kv_heads)) * head, from,
          cat("has a tensor ", shown(tensor.name), " of ", rows, " rows"));
      cannot_relabel_if(tensor.dims.size() == 1 && find_ggml_type(tensor.type)->block != 1, from,
                        cat("has a quantised bias ", shown(tensor.name)));
    }
  }
}

GgufTensorOut relabelled(GgufTensorOut tensor, const Model& model, const Architecture& from) {
  if (model.geometry.pairing == Pairing::halves && is_rotated(tensor.name)) {
    tensor.rows = {std::uint64_t(model.key_length),
                   rotated_heads(tensor.name, rows_of(tensor.dims), model)};
  }
  tensor.name = llama_name(tensor.name, from);
  return tensor;
}

}  // namespace mrrope::exporting
