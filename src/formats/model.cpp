// SPDX-License-Identifier: Apache-2.0
// read_model(): which reader a path goes to, and how declared scaling becomes geometry.
//
// Geometry is the unmodified model: what its engine does with no flag given. What follows from the
// declared type, in transformers 5 and llama.cpp 0.5.0 unless noted otherwise:
//
//   none, default  plain RoPE over the declared window.
//   rope_freqs     (GGUF) divides theta whatever else is declared; Llama 3.1 files carry it and no
//                  keys. If the list is Llama 3's rule it is reported as llama3, with the original
//                  window solved from it.
//   linear         every pair divided by the factor; the declared window is the long one.
//   llama3         Llama 3.1's ramp over the original window; the declared window is the long one.
//   yarn           YaRN's ramp over the original window. The window is the declared one, or the
//                  original times the factor if that is longer: a vendor who recommends YaRN for
//                  long input leaves context_length at the original window. Unmodified the model
//                  runs with it, so it counts as trained. llama.cpp always truncates the ramp.
//   longrope       the short list inside the original window, which is all that a plan starts from;
//                  the long list is kept as well. transformers switches by the length of the text,
//                  llama.cpp by that of the context; both apply the same attention scale on either
//                  side. Two equal lists never switch: one list, the declared window.
//   proportional   (transformers; GGUF as rope_freqs of 1 and 1e30) the later pairs never turn. It
//                  is part of the design, not an extension, and stays if scaling is replaced.
//   dynamic        changes nothing inside the window: plain RoPE, not trained. With an `alpha`
//                  (Hunyuan) it is a larger base, trained, which the reader has applied.
//
// Replaced scaling: the plain base over the original window, attention scale 1.
#include "mrrope/model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/files/output_file.h"
#include "base/files/source.h"
#include "base/json.h"
#include "base/text.h"
#include "core/methods.h"
#include "formats/facts.h"
#include "formats/gguf/gguf.h"
#include "mrrope/plan.h"

namespace mrrope {
namespace {

namespace fs = std::filesystem;

Model read_huggingface(const fs::path& folder, const fs::path& config, bool replace_scaling) {
  Facts facts = config_facts(read_json(config), config.string());
  const Weights weights = find_weights(folder);
  facts.model.weight_bytes = weights.bytes;
  facts.model.files = weights.files;
  facts.model.files.insert(facts.model.files.begin(), config);
  return finish_model(std::move(facts), replace_scaling);
}

Model read_folder(const fs::path& folder, bool replace_scaling) {
  const fs::path config = folder / "config.json";
  std::error_code error;
  if (path_exists(config)) return read_huggingface(folder, config, replace_scaling);
  std::string found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".gguf" && (found.empty() || entry.path().string() < found)) {
      found = entry.path().string();
    }
  }
  fail(cat("the folder ", shown(folder.string()), " has no config.json"),
       found.empty() ? "give a GGUF file, or the folder of a Hugging Face model"
                     : cat("give the GGUF file itself: ", found));
}

// Where only windowed layers rotate, no distance ever grows past the window: nothing to extend.
void refuse_windowed_only(const Model& model) {
  const auto extends = [](const Layer& layer) {
    return layer.kind == LayerKind::full && !layer.windowed_cache;
  };
  if (std::ranges::any_of(model.layers, extends)) return;
  unsupported(cat(shown(model.path.string()), ": ", model.architecture,
                  " rotates only in layers that see the last ", model.sliding_window,
                  " tokens, so no rotation ever leaves what it was trained for"),
              "its other layers have no positions and need no plan: run it as it is, with a longer "
              "context");
}

constexpr double kMaxScale = 1e6;

Geometry bare(const Model& model, std::int64_t window) {
  Geometry geometry = model.geometry;  // not yet with what it was trained with
  geometry.train_length = window;
  return geometry;
}

// YaRN as engines run it, with two settings that a file may change and a plan does not have.
std::vector<double> yarn_factors(const Geometry& g, double factor, const ScalingRule& rule) {
  const YarnRamp ramp = yarn_ramp(g.rotary_dim, g.base, double(g.train_length), rule.beta_fast,
                                  rule.beta_slow, rule.truncate);
  std::vector<double> factors(pair_count(g));
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const double keep = (1 - ramp.at(double(i))) * rule.ext_factor;
    factors[i] = 1 / (keep + (1 - keep) / factor);
  }
  return factors;
}

std::vector<double> llama3_factors(const Geometry& g, double factor, const ScalingRule& rule) {
  Extension request{.method = "llama3", .scale = factor};
  request.parameters.beta_fast = rule.beta_fast;
  request.parameters.beta_slow = rule.beta_slow;
  return make_plan(g, request).factor();
}

// The original window of a list that Llama 3's rule made with turns 1 and 4, or 0. Every pair of
// the middle determines the window; they must agree, and the rule must reproduce the list.
std::int64_t llama3_window(const Model& model, const std::vector<double>& list) {
  const double factor = list.back();
  if (!(factor > 1) || factor > kMaxScale) return 0;
  const std::vector<double> theta = trained_theta(bare(model, 1));
  double window = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!(list[i] > 1 && list[i] < factor)) continue;
    const double keep = (1 / list[i] - 1 / factor) / (1 - 1 / factor);
    window = (1 + 3 * keep) * 2 * std::numbers::pi / theta[i];
    if (keep > 0.2 && keep < 0.8) break;  // far from the ends the list's rounding matters least
  }
  if (!(window >= 1) || window > double(kMaxContext)) return 0;
  // Windows are round numbers; the list holds floats.
  const auto whole = std::int64_t(std::llround(window / 16) * 16);
  if (whole < 16) return 0;
  ScalingRule rule;
  rule.beta_fast = 4;
  const std::vector<double> again = llama3_factors(bare(model, whole), factor, rule);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (std::abs(again[i] / list[i] - 1) > 1e-3) return 0;
  }
  return whole;
}

// Names a bare list of factors, and finds the original window where it can.
void recognise_list(Facts& facts) {
  DeclaredScaling& scaling = facts.model.scaling;
  if (facts.factors.empty() || scaling.type != "none") return;
  if (facts.factors_are_design) {
    scaling.type = "proportional";
    return;
  }
  scaling.trained = true;
  scaling.factor = facts.factors.back();
  scaling.long_factor = facts.factors;
  const std::int64_t window = llama3_window(facts.model, facts.factors);
  scaling.type = window > 0 ? "llama3" : "rope_freqs";
  if (window > 0) scaling.original_length = window;
}

std::int64_t original_window(const Facts& facts) {
  const DeclaredScaling& scaling = facts.model.scaling;
  if (scaling.type == "none" || scaling.type == "dynamic" || scaling.type == "proportional") {
    return facts.context_length;
  }
  if (scaling.original_length > 0) return scaling.original_length;
  refuse_if(scaling.type == "rope_freqs",
            cat(facts.where,
                ": the file holds the vendor's factors but not the window they "
                "started from, so its scaling cannot be replaced"),
            cat("give the bare numbers instead: --rotary-dim ", facts.model.geometry.rotary_dim,
                " --rope-freq-base ", facts.model.geometry.base, " --train-ctx LENGTH"));
  if (scaling.type == "linear") {
    return std::max<std::int64_t>(1, std::llround(double(facts.context_length) / scaling.factor));
  }
  return facts.context_length;
}

// What the declared scaling divides theta by; sets the window.
std::vector<double> declared_factors(const Facts& facts, std::int64_t& window) {
  const DeclaredScaling& scaling = facts.model.scaling;
  const std::int64_t stated = scaling.original_length;
  const Geometry original = bare(facts.model, stated > 0 ? stated : facts.context_length);
  if (scaling.type == "linear") return std::vector<double>(pair_count(original), scaling.factor);
  if (scaling.type == "llama3" && facts.factors.empty()) {
    return llama3_factors(original, scaling.factor, facts.rule);
  }
  if (scaling.type == "yarn") {
    if (facts.rule.original_stated) {
      const double reach = double(original.train_length) * scaling.factor;
      window = std::max(window, std::int64_t(std::llround(reach)));
    }
    return yarn_factors(original, scaling.factor, facts.rule);
  }
  if (scaling.type == "longrope") {
    if (scaling.short_factor != scaling.long_factor) window = original.train_length;
    return scaling.short_factor;
  }
  return {};
}

[[noreturn]] void wrong_number(const std::string& where, std::string_view key, double value,
                               const char* wanted) {
  corrupt(where, cat(key, " is ", significant(value, 9), ", not ", wanted));
}

}  // namespace

Model read_model(const fs::path& path, bool replace_scaling) {
  Model model;
  if (folder_exists(path)) {
    model = read_folder(path, replace_scaling);
  } else if (path.filename() == "config.json") {
    model = read_huggingface(folder_of(path), path, replace_scaling);
  } else if (path.extension() == ".safetensors" ||
             path.filename() == "model.safetensors.index.json") {
    if (path.extension() == ".safetensors") safetensors_bytes(Source::open(path));
    model = read_folder(folder_of(path), replace_scaling);
  } else if (path.extension() == ".json") {
    // Under another name it is only a config; weights in the same folder may belong to another
    // model.
    Facts facts = config_facts(read_json(path), path.string());
    facts.model.files = {path};
    model = finish_model(std::move(facts), replace_scaling);
  } else {
    model = finish_model(gguf_facts(read_gguf(path)), replace_scaling);
  }
  model.path = path;
  refuse_windowed_only(model);
  return model;
}

const Architecture& supported(const Architecture* found, const std::string& where, const char* kind,
                              const std::string& name) {
  unsupported_if(!found, cat(where, ": the ", kind, " ", shown(name), " is not known"),
                 "plan from numbers instead: --rotary-dim N --rope-freq-base B --train-ctx LENGTH");
  unsupported_if(
      !found->unsupported.empty(),
      cat(where, ": architecture ", found->name, " cannot be extended: ", found->unsupported),
      "only models that turn queries and keys (RoPE) can be extended");
  return *found;
}

void check_made_for(const Geometry& made_for, const Model& model) {
  Geometry known = model.geometry;
  if (made_for.long_factor.empty()) {  // plan files did not always hold it, and few plans need it
    known.long_factor.clear();
    known.long_length = 0;
  }
  if (made_for == known) return;
  refuse(cat("the plan was made for ", describe(made_for), "; this model has ",
             describe(model.geometry)),
         "make the plan from this model: mrrope plan MODEL ... (with --replace-scaling on "
         "both or on neither)");
}

bool has_windows_apart(const Model& model) {
  return std::ranges::any_of(model.layers,
                             [](const Layer& layer) { return layer.kind == LayerKind::windowed; });
}

std::uint64_t kv_bytes(const Model& model, std::int64_t tokens, double bits_per_element) {
  refuse_if(tokens < 0 || !(bits_per_element > 0) || bits_per_element > 64,
            cat("a cache of ", tokens, " tokens at ", bits_per_element,
                " bits per element is not possible"),
            "give a positive length, and 16 bits for f16 or 8.5 for q8_0");
  // MLA caches one vector per token, whose front serves as the value.
  const double width = model.latent_attention
                           ? double(model.key_length)
                           : double(model.key_length) + double(model.value_length);
  double elements = 0;
  for (const Layer& layer : model.layers) {
    if (layer.kind == LayerKind::recurrent) continue;
    const bool capped = layer.windowed_cache && model.sliding_window > 0;
    const std::int64_t kept =
        capped ? std::min<std::int64_t>(tokens, model.sliding_window) : tokens;
    elements += double(kept) * double(layer.kv_heads) * width;
  }
  const double bytes = std::ceil(elements * bits_per_element / 8);
  // 2^63 bytes and more do not fit anywhere.
  return bytes < 9.2e18 ? std::uint64_t(bytes) : UINT64_MAX;
}

void check_base(const std::string& where, std::string_view key, double base) {
  if (base > 1 && base <= 1e15) return;
  wrong_number(where, key, base, "a number above 1 and up to 1e+15");
}

void check_rotary_dim(const std::string& where, std::string_view key, std::int64_t rotary_dim,
                      std::int64_t head) {
  if (rotary_dim >= 4 && rotary_dim % 2 == 0 && rotary_dim <= head) return;
  corrupt(where, cat(key, " is ", rotary_dim, ", not an even number from 4 to the head's ", head,
                     " elements"));
}

void check_factor(const std::string& where, std::string_view key, double factor) {
  if (factor >= 1 && factor <= kMaxScale) return;
  wrong_number(where, key, factor, "a number from 1 to 1e+06");
}

void check_attention_scale(const std::string& where, std::string_view key, double scale) {
  if (scale > 0 && scale <= 1000) return;
  wrong_number(where, key, scale, "a positive number up to 1000");
}

void check_factor_list(const std::string& where, std::string_view key,
                       const std::vector<double>& list, int rotary_dim) {
  corrupt_if(list.size() != std::size_t(rotary_dim / 2), where,
             cat(key, " has ", list.size(), " entries where ", rotary_dim / 2, " pairs rotate"));
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] > 0 && std::isfinite(list[i])) continue;
    wrong_number(where, cat(key, "[", i, "]"), list[i], "a positive number");
  }
}

Model finish_model(Facts facts, bool replace_scaling) {
  Model& model = facts.model;
  model.architecture = facts.architecture->name;
  try {
    model.layers = layers_of(*facts.architecture, facts.layer_keys);
    model.sliding_window = window_of(*facts.architecture, facts.layer_keys);
  } catch (const Error& error) {
    throw Error(error.kind(), cat(facts.where, ": ", error.what()),
                error.kind() == ErrorKind::unsupported
                    ? "only layers that turn queries and keys over the whole text can be extended"
                    : "the file is damaged or was edited by hand: fetch it again");
  }
  for (const Layer& layer : model.layers) model.kv_heads = std::max(model.kv_heads, layer.kv_heads);
  recognise_list(facts);

  Geometry& geometry = model.geometry;
  std::vector<double>& trained = geometry.trained_factor;
  geometry.train_length = facts.context_length;
  if (replace_scaling) {
    geometry.train_length = original_window(facts);
    model.scaling.trained = false;
    if (facts.factors_are_design) trained = facts.factors;
  } else {
    trained = declared_factors(facts, geometry.train_length);
    if (trained.empty()) trained.resize(facts.factors.size(), 1);
    for (std::size_t i = 0; i < facts.factors.size(); ++i) trained[i] *= facts.factors[i];
    geometry.trained_attention_scale = facts.rule.attention_scale;
    const DeclaredScaling& s = model.scaling;
    if (s.type == "longrope" && s.long_factor != s.short_factor &&
        facts.context_length > geometry.train_length) {
      geometry.long_factor = s.long_factor;
      geometry.long_length = facts.context_length;
    }
  }
  const auto is_one = [](double f) { return f == 1; };
  if (std::ranges::all_of(trained, is_one)) trained.clear();
  try {
    validate(geometry);
  } catch (const Error& error) {
    corrupt(facts.where, error.what());
  }
  return std::move(model);
}

}  // namespace mrrope
