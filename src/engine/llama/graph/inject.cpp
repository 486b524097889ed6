// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/inject.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "core/methods.h"

namespace mrrope::engine {

namespace {

// The parameters of a rotation, as ggml keeps them in op_params.
struct RopeParameters {
  std::int32_t past, dims, mode, context, original_length;
  float base, scale, ext, attention, beta_fast, beta_slow;
  std::int32_t sections[4];
};

RopeParameters parameters_of(const ggml_tensor* node) {
  RopeParameters parameters;
  std::memcpy(&parameters, node->op_params, sizeof parameters);
  return parameters;
}

// The facts of a file are doubles, the nodes' numbers floats, some through powf and logf.
constexpr double kThetaTolerance = 1e-4;

constexpr const char* kOurName = "mrrope_factors";
constexpr const char* kOurPositions = "mrrope_positions";

// ggml numbers nodes that have no name, and the numbers change from graph to graph.
std::string name_of(const ggml_tensor* node) {
  const std::string name = ggml_get_name(node);
  return name.rfind("node_", 0) == 0 ? std::string() : name;
}

// As ggml assigns pairs to positions.
std::vector<bool> fixed_pairs_of(const RopeParameters& p) {
  if ((p.mode & GGML_ROPE_TYPE_MROPE) == 0) return {};
  const std::int32_t* s = p.sections;
  const int all = s[0] + s[1] + s[2] + s[3];
  std::vector<bool> still(std::size_t(p.dims / 2));
  for (std::size_t i = 0; i < still.size(); ++i) {
    const int sector = int(i) % all;
    still[i] = p.mode == GGML_ROPE_TYPE_IMROPE ? sector >= 3 * s[(sector % 3)]
                                               : sector >= s[0] + s[1] + s[2];
  }
  return !has(still, true) ? std::vector<bool>() : still;
}

Rotation read_rotation(const ggml_tensor* node) {
  const RopeParameters p = parameters_of(node);
  Rotation r{.name = name_of(node),
             .rotary_dim = p.dims,
             .row = int(node->ne[0]),
             .heads = int(node->ne[1]),
             .mode = p.mode,
             .original_length = p.original_length,
             .base = p.base,
             .scale = p.scale,
             .ext = p.ext,
             .attention = p.attention,
             .beta_fast = p.beta_fast,
             .beta_slow = p.beta_slow,
             .factors = {},
             .fixed_pairs = fixed_pairs_of(p)};
  if (const ggml_tensor* factors = node->src[2]) {
    r.factors.resize(std::size_t(factors->ne[0]));
    ggml_backend_tensor_get(factors, r.factors.data(), 0, r.factors.size() * sizeof(float));
  }
  return r;
}

struct Probe {
  std::vector<Rotation> rotations;
  std::vector<const ggml_tensor*> nodes;  // of rotations
  std::string failure;

  static bool callback(ggml_tensor* node, bool ask, void* data) noexcept {
    auto& probe = *static_cast<Probe*>(data);
    if (node->op == GGML_OP_SET_ROWS && ask) {
      const auto of = std::ranges::find(probe.nodes, stored_rotation(node).rotation);
      if (of != probe.nodes.end()) {
        probe.rotations[std::size_t(of - probe.nodes.begin())].is_key = true;
      }
    }
    if (node->op != GGML_OP_ROPE) return !ask;
    // Read once the node is computed: before, its factors may still be on their way to a device.
    if (ask) return true;
    try {
      probe.rotations.push_back(read_rotation(node));
      probe.nodes.push_back(node);
    } catch (const std::exception& error) {
      probe.failure = error.what();
    }
    return true;
  }
};

[[noreturn]] void refuse(const std::string& message) {
  unsupported(
      message,
      "this build supports the graphs of llama.cpp 0.5.0 only; `mrrope inspect MODEL` shows "
      "what the file contains");
}

std::string list_of(const std::vector<Rotation>& rotations) {
  return joined(mapped(rotations, [](const Rotation& r) { return cat(r.name, "/", r.row); }), " ");
}

// The rotations of one token, after a few tokens at once, which must show the same ones.
std::vector<Rotation> run_probe(llama_model* model, llama_context_params params,
                                float frequency_scale) {
  constexpr int kSeveral = 4;
  Probe probe;
  params.n_ctx = 256;
  params.n_batch = kSeveral;
  params.n_ubatch = kSeveral;
  params.n_seq_max = 1;
  params.cb_eval = Probe::callback;
  params.cb_eval_user_data = &probe;
  if (frequency_scale != 0) {
    // LINEAR, so that a model trained with YaRN keeps its window: llama.cpp writes it to the model.
    params.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_LINEAR;
    params.rope_freq_scale = frequency_scale;
    params.yarn_ext_factor = 0;
  }
  take_llama_log();
  const LlamaPtr<llama_context> context(llama_init_from_model(model, params));
  if (!context) {
    unsupported(cat("libllama cannot make a context for this model: ", take_llama_log()));
  }
  std::vector<Rotation> of_several;
  for (const int count : {kSeveral, 1}) {
    llama_token tokens[kSeveral] = {};
    of_several = std::exchange(probe.rotations, {});
    probe.nodes.clear();
    if (llama_decode(context.get(), llama_batch_get_one(tokens, count)) != 0 ||
        !probe.failure.empty()) {
      fail(cat("a first decode of ", count, " tokens failed: ", probe.failure, take_llama_log()));
    }
  }
  if (list_of(of_several) != list_of(probe.rotations)) {
    refuse("the graph of this model rotates one token in another order than several");
  }
  return std::move(probe.rotations);
}

// The first pair that turns differently, or their number.
std::size_t first_difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::size_t i = 0;
  while (i < a.size() && i < b.size() &&
         std::abs(a[i] - b[i]) <= kThetaTolerance * std::abs(b[i])) {
    ++i;
  }
  return i;
}

}  // namespace

std::vector<double> theta_of(const Rotation& r) {
  std::vector<double> theta(std::size_t(r.rotary_dim / 2));
  const YarnRamp ramp =
      yarn_ramp(r.rotary_dim, double(r.base), r.original_length, r.beta_fast, r.beta_slow);
  for (std::size_t i = 0; i < theta.size(); ++i) {
    const int pair = int(i);
    const double bare = bare_theta(r, pair) / (r.factors.empty() ? 1.0F : r.factors[i]);
    const double mix = r.ext == 0 ? 0 : (1 - ramp.at(pair)) * r.ext;
    theta[i] = bare * (r.scale * (1 - mix) + mix);
  }
  return theta;
}

std::vector<Rotation> probe_rotations(llama_model* model, const llama_context_params& like) {
  std::vector<Rotation> shipped = run_probe(model, like, 0);
  const float trained = llama_model_rope_freq_scale_train(model);
  const std::vector<Rotation> scaled = run_probe(model, like, 0.37F * trained);
  if (shipped.size() != scaled.size()) {
    refuse(cat("two contexts of this model have ", shipped.size(), " and ", scaled.size(),
               " rotations in their graphs, and only the frequency scale differs"));
  }
  for (std::size_t i = 0; i < shipped.size(); ++i) {
    Rotation& r = shipped[i];
    if (r.rotary_dim <= 0 || r.rotary_dim % 2 != 0 || r.rotary_dim > r.row || !(r.base > 0) ||
        !(r.scale > 0) || !(r.attention > 0) ||
        (!r.factors.empty() && r.factors.size() < std::size_t(r.rotary_dim / 2))) {
      refuse(cat("rotation ", i, " (", r.name, ") of this model has n_dims ", r.rotary_dim, " of ",
                 r.row, ", base ", r.base, ", scale ", r.scale, ", attention ", r.attention,
                 ": not what a rotation looks like in llama.cpp 0.5.0"));
    }
    if (r.name != scaled[i].name || r.rotary_dim != scaled[i].rotary_dim ||
        r.base != scaled[i].base) {
      refuse(cat("rotation ", i, " of this model is ", r.name, " in one context and ",
                 scaled[i].name, " in another"));
    }
    r.takes_plan = r.scale != scaled[i].scale;
  }
  return shipped;
}

void check_rotations(const std::vector<Rotation>& rotations, const Model& facts) {
  std::size_t expected = 0;
  std::size_t expected_apart = 0;
  std::size_t indexers = 0;  // rotations other than those of queries and keys
  for (const Layer& layer : facts.layers) {
    const int attention =
        layer.kv_heads > 0 ? 2 : 1;  // queries, and keys unless an earlier layer's
    expected += std::size_t(layer.rotations);
    indexers += std::size_t(std::max(0, layer.rotations - attention));
    if (layer.kind == LayerKind::windowed) expected_apart += std::size_t(attention);
  }
  const auto follow =
      std::size_t(std::ranges::count_if(rotations, [](const Rotation& r) { return r.takes_plan; }));
  if (follow != expected || rotations.size() - follow != expected_apart) {
    refuse(cat("the graph of this ", facts.architecture, " model has ", follow,
               " rotations that a plan applies to and ", rotations.size() - follow,
               " others, and the table of architectures expects ", expected, " and ",
               expected_apart));
  }
  if (follow == 0) {
    refuse(cat("no rotation in the graph of this ", facts.architecture,
               " model follows the context's scaling, so no plan can be applied to it"));
  }
  const std::vector<double> trained = trained_theta(facts.geometry);
  std::size_t other_pairing = 0;
  for (const Rotation& r : rotations) {
    if (!r.takes_plan) continue;
    if (r.rotary_dim != facts.geometry.rotary_dim) {
      refuse(cat("the graph rotates ", r.rotary_dim, " elements of a head (", r.name,
                 "), but the file has ", facts.geometry.rotary_dim));
    }
    if (float(facts.geometry.base) != r.base) {
      refuse(cat("the graph rotates with base ", r.base, " (", r.name, "), but the file has ",
                 facts.geometry.base));
    }
    // An indexer may pair in its own way: its scores are its own.
    if (pairing_of(r) != facts.geometry.pairing && ++other_pairing > indexers) {
      refuse(cat("the graph pairs elements as ", to_string(pairing_of(r)), " (", r.name,
                 "), but the table of architectures has ", to_string(facts.geometry.pairing)));
    }
    // Scaling may differ where the vendor's was forgotten on purpose, and where a file has two
    // lists of factors and the context decides which one is shown.
    const bool forgotten = facts.geometry.trained_factor.empty();
    const bool two_lists = !facts.scaling.short_factor.empty();
    const std::vector<double> theta = theta_of(r);
    const std::size_t i = first_difference(theta, trained);
    if (!forgotten && !two_lists && i < theta.size()) {
      refuse(cat("the graph turns pair ", i, " by ", theta[i], " radians per position (", r.name,
                 "), and the file's scaling gives ", trained[i]));
    }
  }
}

RotarySetting make_setting(const std::vector<Rotation>& rotations, const Plan& plan,
                           bool lists_switch, Temperature temperature, double sharpness) {
  RotarySetting setting;
  setting.edit_of.assign(rotations.size(), kNoEdit);
  const std::vector<double> trained = trained_theta(plan.geometry());
  const bool identity = is_identity(plan);
  for (std::size_t n = 0; n < rotations.size(); ++n) {
    const Rotation& r = rotations[n];
    if (!r.takes_plan) continue;
    const std::vector<double> theta = theta_of(r);
    const bool on_top =
        theta.size() == trained.size() && first_difference(theta, trained) == theta.size();
    RotaryEdit edit;
    const double sharper = r.is_key ? 1 : sharpness;
    edit.unmodified = on_top && identity && !lists_switch && sharper == 1;
    edit.factors.assign(std::size_t(r.row / 2), 1.0F);
    for (std::size_t i = 0; i < plan.factor().size(); ++i) {
      const double own = r.factors.empty() ? 1.0 : double(r.factors[i]);
      edit.factors[i] =
          float(on_top ? own * plan.factor()[i] : bare_theta(r, int(i)) / plan.theta()[i]);
    }
    const double t = plan.attention_scale();
    const bool carries = r.is_key == (temperature == Temperature::on_keys);
    edit.attention =
        float((temperature == Temperature::on_both ? t
               : carries                           ? t * t
                                                   : 1) *
              sharper * (on_top ? double(r.attention) : plan.geometry().trained_attention_scale));
    if (on_top) {
      edit.scale = r.scale;
      edit.ext = r.ext;
    }
    const auto same = std::ranges::find(setting.edits, edit);
    setting.edit_of[n] = std::size_t(same - setting.edits.begin());
    if (same == setting.edits.end()) setting.edits.push_back(std::move(edit));
  }
  return setting;
}

void Injector::begin(std::size_t setting, std::span<const std::int32_t> positions, bool shifted) {
  setting_ = setting;
  // Of M-RoPE's four positions the last one is 0 for text.
  tokens_ = positions.size();
  positions_.assign(4 * tokens_, 0);
  for (std::size_t i = 0; i < 3 * tokens_; ++i) positions_[i] = positions[i % tokens_];
  shifted_ = shifted;
  ++decodes_;
  seen_ = 0;
  failure_.clear();
  rotated_.clear();
  cells_.clear();
  cells_of_ = nullptr;
}

void Injector::finish() {
  if (failure_.empty() && seen_ != rotations_.size()) {
    failure_ = cat("a decode showed ", seen_, " rotations, the probe ", rotations_.size());
  }
  if (failure_.empty() && watching_ && !key_caches_.empty() && cells_.size() != tokens_) {
    failure_ = cat("a decode of ", tokens_, " tokens stored keys in ", cells_.size(), " cells");
  }
  if (!failure_.empty()) fail("the plan was not applied: " + failure_);
}

void Injector::note_failure(std::string message) {
  if (failure_.empty()) failure_ = std::move(message);
}

bool Injector::callback(ggml_tensor* node, bool ask, void* data) noexcept {
  auto& self = *static_cast<Injector*>(data);
  try {
    if (node->op == GGML_OP_ROPE && ask) self.visit(node);
    if (node->op == GGML_OP_SET_ROWS && ask && self.watching_) self.visit_store(node);
    if (self.on_logits && std::strcmp(node->name, "result_output") == 0) {
      if (!ask) self.on_logits(node);
      return true;
    }
  } catch (const std::exception& error) {
    self.note_failure(error.what());
  }
  return !ask;
}

// Writes absolute values: libllama reuses graphs, and a node may have been edited already.
void Injector::visit(ggml_tensor* node) {
  const std::size_t index = seen_++;
  if (index >= rotations_.size()) return;  // finish() compares the counts
  rotated_.push_back(node);
  const Rotation& r = rotations_[index];
  RopeParameters p = parameters_of(node);
  if (name_of(node) != r.name || p.dims != r.rotary_dim || node->ne[0] != r.row ||
      p.base != r.base) {
    note_failure(cat("rotation ", index, " is ", ggml_get_name(node), " with n_dims ", p.dims,
                     " and base ", p.base, ", and the probe saw ", r.name, " with ", r.rotary_dim,
                     " and ", r.base));
    return;
  }
  const RotarySetting& setting = settings_.at(setting_);
  const std::size_t number = setting.edit_of.at(index);
  if (number == kNoEdit) return;
  const RotaryEdit& edit = setting.edits[number];
  const ggml_backend_buffer_type_t type = ggml_backend_buffer_get_type(buffer_of(node));
  const bool moved = std::strcmp(node->src[1]->name, kOurPositions) == 0;
  if (shifted_ || moved) {
    const auto count = std::size_t(node->src[1]->ne[0]);
    if (count != tokens_ && count != positions_.size()) {
      unsupported(cat("a rotation has ", count, " positions for ", tokens_, " tokens"));
    }
    node->src[1] = input({}, GGML_TYPE_I32, positions_.data(), count, decodes_, type);
  }
  const bool edited = node->src[2] != nullptr && std::strcmp(node->src[2]->name, kOurName) == 0;
  if (edit.unmodified && !edited) return;
  node->src[2] =
      input(edit.factors, GGML_TYPE_F32, edit.factors.data(), edit.factors.size(), 1, type);
  p.scale = edit.scale;
  p.ext = edit.ext;
  p.attention = edit.attention;
  std::memcpy(node->op_params, &p, sizeof p);
}

// A store into a known cache needs no way back to its rotation: where a batch is computed on a
// device and the cache is in host memory, ggml's scheduler stores a copy of the rotation's result.
void Injector::visit_store(const ggml_tensor* node) {
  ggml_tensor* cache = node->src[2];
  while (cache->view_src != nullptr) cache = cache->view_src;
  const bool known = find_by(key_caches_, &KeyCache::tensor, cache) != nullptr;
  const StoredRotation stored = known ? StoredRotation{} : stored_rotation(node);
  const auto of = std::ranges::find(rotated_, stored.rotation);
  if (!known && of == rotated_.end()) return;
  const auto index = std::size_t(of - rotated_.begin());
  if (!known && !rotations_[index].takes_plan) return;

  const ggml_tensor* list = node->src[1];
  if (list != cells_of_) {
    std::vector<std::int64_t> wide(std::size_t(list->ne[0]));
    if (list->type != GGML_TYPE_I64) {
      note_failure(
          cat("the cells of keys are listed as ", ggml_type_name(list->type), ", not as i64"));
      return;
    }
    ggml_backend_tensor_get(list, wide.data(), 0, wide.size() * sizeof(std::int64_t));
    std::vector<std::int32_t> cells(wide.begin(), wide.end());
    if (cells_of_ != nullptr && cells != cells_) {
      note_failure("the layers of this model keep the same token in different cells");
      return;
    }
    cells_ = std::move(cells);
    cells_of_ = list;
  }

  if (known) return;
  KeyCache found;
  found.tensor = cache;
  found.rotation = index;
  found.heads = int(stored.rotation->ne[1]);
  if (cache->ne[0] != std::int64_t{found.heads} * rotations_[index].row || cache->ne[3] != 1) {
    note_failure(cat("keys of ", found.heads, " heads of ", rotations_[index].row,
                     " are stored in rows of ", cache->ne[0]));
    return;
  }
  if (stored.mix != nullptr) {
    found.mix.resize(std::size_t(ggml_nelements(stored.mix)));
    ggml_backend_tensor_get(stored.mix, found.mix.data(), 0, ggml_nbytes(stored.mix));
  }
  key_caches_.push_back(std::move(found));
}

ggml_tensor* Injector::input(const std::vector<float>& factors, ggml_type kind, const void* values,
                             std::size_t count, std::size_t version,
                             ggml_backend_buffer_type_t type) {
  DeviceInput& d = inputs_[{factors, count, type}];
  if (!d.buffer) {
    d.context.reset(ggml_init({ggml_tensor_overhead(), nullptr, true}));
    d.tensor = ggml_new_tensor_1d(d.context.get(), kind, std::int64_t(count));
    ggml_set_name(d.tensor, kind == GGML_TYPE_I32 ? kOurPositions : kOurName);
    d.buffer.reset(ggml_backend_alloc_ctx_tensors_from_buft(d.context.get(), type));
    if (!d.buffer) throw Error(ErrorKind::out_of_memory, "no memory for the inputs of a rotation");
  }
  if (std::exchange(d.version, version) != version) {
    ggml_backend_tensor_set(d.tensor, values, 0, ggml_nbytes(d.tensor));
  }
  return d.tensor;
}

}  // namespace mrrope::engine
