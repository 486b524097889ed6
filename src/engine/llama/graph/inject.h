// SPDX-License-Identifier: Apache-2.0
// A plan written into the graphs of an unpatched libllama, through the callback that its scheduler
// makes before it computes a node.
//
// Beyond the API this relies on: every rotation is a node with op ROPE, whose op_params are as in
// inject.cpp and whose src[2] holds the divisors of theta; the callback sees the nodes of a graph
// in one fixed order. probe_rotations() and every decode check what can be checked of it.
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "engine/llama/graph/keys.h"
#include "engine/llama/loader.h"
#include "mrrope/model.h"
#include "mrrope/plan.h"

namespace mrrope::engine {

// One rotation of queries or keys in the model's own graph, unmodified.
struct Rotation {
  std::string name;  // as llama.cpp calls the node; empty where it does not
  int rotary_dim = 0;
  int row = 0;  // elements of a head vector in this node: the kernel reads row/2 divisors
  int heads = 0;
  int mode = 0;
  int original_length = 0;
  float base = 0;
  float scale = 1;  // freq_scale: multiplies theta
  float ext = 0;    // not 0: YaRN's ramp is on
  float attention = 1;
  float beta_fast = 0;
  float beta_slow = 0;
  std::vector<float> factors;  // divisors of theta; empty: none
  // Pairs that follow the fourth position of M-RoPE, which is 0 for text; empty: none. Interleaved
  // sections leave the slowest pairs to it.
  std::vector<bool> fixed_pairs;
  bool takes_plan = false;  // moves with the context's own scaling: plans apply here
  bool is_key = false;      // its result goes into a cache as it is: these are keys
};

// Sections of positions (M-RoPE) are one and the same for text, and pair as halves.
inline Pairing pairing_of(const Rotation& r) {
  return r.mode == GGML_ROPE_TYPE_NORMAL ? Pairing::interleaved : Pairing::halves;
}
// Without factors and scaling: radians per position of a pair.
inline double bare_theta(const Rotation& r, int pair) {
  return std::pow(double(r.base), -2.0 * pair / r.rotary_dim);
}
// Radians per position of every pair, as the node computes them.
std::vector<double> theta_of(const Rotation& rotation);

// All rotations in the order of the graph, from two short contexts, one with another frequency
// scale; otherwise like the context that plans will be applied to, since flash attention and the
// cache's types change some graphs. Throws Error (unsupported) where nodes are not as above.
std::vector<Rotation> probe_rotations(llama_model* model, const llama_context_params& like);

// Compares what the graph does with the facts of the file: how many rotations follow and how many
// do not, their dimension, base, scaling and pairing. Throws Error (unsupported) naming both.
void check_rotations(const std::vector<Rotation>& rotations, const Model& facts);

// What to write into one node.
struct RotaryEdit {
  std::vector<float> factors;  // row/2 divisors
  float scale = 1;
  float ext = 0;
  float attention = 1;
  bool unmodified = false;  // the node already does this unless an earlier edit changed it

  bool operator==(const RotaryEdit&) const = default;
};
// What to write into the nodes of one graph.
struct RotarySetting {
  std::vector<std::size_t> edit_of;  // per rotation: index into edits, or kNoEdit
  std::vector<RotaryEdit> edits;
};
inline constexpr std::size_t kNoEdit = std::size_t(-1);  // plans do not apply here

// The plan over the model's rotations. The plan's factors multiply those the node has already;
// where the plan's geometry is not the one the node was shipped with (the vendor's scaling
// forgotten), the node's own scaling is replaced. lists_switch: the file has two lists of factors
// and libllama takes the long one for any long context, so that the short one must be written even
// for a plan that changes nothing.
// Temperature::on_queries puts the square of the plan's temperature on what is not stored and none
// on what is: the same scores, and keys that differ from plan to plan by a rotation alone. on_keys
// is the opposite, for plans of some keys only. sharpness multiplies queries.
enum class Temperature { on_both, on_queries, on_keys };
RotarySetting make_setting(const std::vector<Rotation>& rotations, const Plan& plan,
                           bool lists_switch, Temperature temperature = Temperature::on_both,
                           double sharpness = 1);

// Applies settings to every graph of one context. Give callback() and this object to
// llama_context_params; call begin() before and finish() after each llama_decode of one ubatch. The
// context must be destroyed before this object.
class Injector {
 public:
  explicit Injector(std::vector<Rotation> rotations) : rotations_(std::move(rotations)) {}
  Injector(const Injector&) = delete;
  Injector& operator=(const Injector&) = delete;

  const std::vector<Rotation>& rotations() const noexcept { return rotations_; }
  std::size_t decodes() const noexcept { return decodes_; }

  // Settings are kept together, so that each decode may use another one, by its number.
  void add(RotarySetting setting) { settings_.push_back(std::move(setting)); }
  void clear() { settings_.clear(); }
  const RotarySetting& setting(std::size_t number) const { return settings_.at(number); }

  // positions: what edited nodes rotate the tokens of this decode for. shifted: these are not
  // libllama's own, which stay as they are.
  void begin(std::size_t setting, std::span<const std::int32_t> positions, bool shifted);
  // Throws Error (failed) unless the decode showed exactly the rotations of the probe.
  void finish();

  static bool callback(ggml_tensor* node, bool ask, void* injector) noexcept;

  // From now on decodes tell where they store keys: key_caches() lists the caches that plans apply
  // to, cells() the cell of each token of the last decode, which is the same in all of them.
  void watch_keys(bool watch) noexcept { watching_ = watch; }
  const std::vector<KeyCache>& key_caches() const noexcept { return key_caches_; }
  const std::vector<std::int32_t>& cells() const noexcept { return cells_; }

  // Called with the node of the logits once it is computed, inside llama_decode; empty: not at all.
  std::function<void(ggml_tensor*)> on_logits;

 private:
  // Divisors of theta, or shifted positions, in the memory of a device.
  struct DeviceInput {
    LlamaPtr<ggml_context> context;
    LlamaPtr<ggml_backend_buffer> buffer;
    ggml_tensor* tensor = nullptr;
    std::size_t version = 0;  // of its content; 0: none
  };

  void visit(ggml_tensor* node);
  void visit_store(const ggml_tensor* node);
  // Throws Error (out_of_memory).
  ggml_tensor* input(const std::vector<float>& factors, ggml_type kind, const void* values,
                     std::size_t count, std::size_t version, ggml_backend_buffer_type_t type);
  void note_failure(std::string message);

  std::vector<Rotation> rotations_;
  std::vector<RotarySetting> settings_;
  // By divisors (none: positions), count and the kind of memory that a node lives in. Never freed
  // before this object: graphs that libllama reuses may still point there.
  std::map<std::tuple<std::vector<float>, std::size_t, ggml_backend_buffer_type_t>, DeviceInput>
      inputs_;
  std::size_t tokens_ = 0;  // of this decode
  std::vector<std::int32_t> positions_;
  bool shifted_ = false;
  std::size_t decodes_ = 0;
  std::size_t setting_ = 0;
  std::size_t seen_ = 0;
  bool watching_ = false;
  std::vector<KeyCache> key_caches_;
  std::vector<std::int32_t> cells_;
  const ggml_tensor* cells_of_ = nullptr;    // where cells_ was read in this decode
  std::vector<const ggml_tensor*> rotated_;  // the rotations of this decode
  std::string failure_;                      // of this decode: no exception may cross the callback
};

}  // namespace mrrope::engine
