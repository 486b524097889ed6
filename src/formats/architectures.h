// SPDX-License-Identifier: Apache-2.0
// The one table of architectures (architectures.json): what a model's keys do not say about its
// positions, and what llama.cpp does with per-pair factors. Facts of llama.cpp 0.5.0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mrrope/model.h"

// Part of the program: CMake turns formats/architectures.json into a string (mrrope_embed).
namespace mrrope::embedded {
extern const char* const architectures_json;
}  // namespace mrrope::embedded

namespace mrrope {

// What stock llama.cpp does with a rope_freqs tensor in a file of this architecture.
enum class FactorSupport {
  used,        // loaded and applied
  long_short,  // only as the pair rope_factors_long / rope_factors_short
  ignored,     // loaded, but the graph ignores it
  refused,     // "wrong number of tensors"
};

// Which layers attend through a sliding window.
enum class Windows {
  none,         // none, whatever the file says about windows
  if_stated,    // those of the pattern, where the file states a window above 0
  unless_zero,  // those of the pattern, unless the file states a window of 0
  always,       // those of the pattern
  listed,       // those of the file's array, which must be there
};

// Which layers keep a recurrent state instead of keys and values.
enum class Recurrence {
  none,
  without_kv_heads,  // those with 0 KV heads
  between,           // those of the file's array, or all but every attention_period-th
};

// Which layers rotate the queries and keys of an indexer (sparse attention) as well.
enum class Indexer {
  none,
  every,
  listed,           // those of the file's array
  listed_or_every,  // without an array: all, or every fourth in files trained for 1M tokens
  unwindowed,
  after_dense,  // those after the leading dense layers
};

// How the layers of one architecture differ. The default: every layer attends to everything,
// rotates, and follows the context's scaling.
struct LayerRule {
  Windows windows = Windows::none;
  // Without an array in the file every period-th layer has no window; 0: all have one.
  int period = 0;
  bool full_first = false;      // the layer without a window is the first of a period, not the last
  int windows_at_depth = 0;     // windows only in the model with this many layers
  int default_window = 0;       // tokens, where the file does not say
  bool windows_follow = false;  // windowed layers take the context's scaling, so plans apply
  bool only_windows_rotate = false;  // where there are windows, the other layers do not rotate
  bool dense_rotates = false;        // the leading dense layers rotate anyway
  int unrotated_period = 0;          // of each group of this many layers the last does not rotate
  int rotates_at_depth = 0;          // only the model with this many layers rotates at all
  bool rope_switch = false;          // rope.scaling.finetuned = false means: no rotation
  Recurrence recurrence = Recurrence::none;
  int attention_period = 4;
  int kv_layers = 0;  // only this many layers at the start own keys, the others read theirs; 0: all
  Indexer indexer = Indexer::none;
};

// Further facts, or-ed together.
enum class Trait : unsigned {
  none = 0,
  // MLA with the compressed vector in the cache, in files that state attention.key_length_mla.
  latent_attention = 1 << 0,
  mrope = 1 << 1,            // positions of several dimensions, where the file has sections
  scale_in_scores = 1 << 2,  // llama.cpp's attention scale follows freq_scale and attn_factor
  // Scaling keys of a file (not flags of a context) reach layers that plans leave alone.
  keys_reach_windows = 1 << 3,
  // Its graph is llama's but for the pairing, the names of some tensors and biases, so that a file
  // can be re-labelled without loss. The next three: what else it reads differently.
  like_llama = 1 << 4,
  norm_renamed = 1 << 5,       // post_attention_norm is what llama calls ffn_norm
  reads_output_bias = 1 << 6,  // attn_output.bias
  reads_scale = 1 << 7,        // the key attention.scale, as llama does
  // Keys of YaRN that llama.cpp reads for some architectures only.
  reads_yarn_betas = 1 << 8,
  reads_yarn_mix = 1 << 9,
  // rope.scaling.yarn_log_multiplier equals the other coefficient, so the two cancel out; or the
  // file carries a tenth of it.
  multiplier_cancels = 1 << 10,
  multiplier_tenth = 1 << 11,
  alpha_in_base = 1 << 12,  // rope.scaling.alpha enlarges the base
  multi_query = 1 << 13,    // config.json: multi_query means one key head
};
constexpr Trait operator|(Trait a, Trait b) { return Trait(unsigned(a) | unsigned(b)); }

struct Architecture {
  std::string name;         // general.architecture of a GGUF
  std::string huggingface;  // transformers' model_type names, separated by spaces
  // In a GGUF; with M-RoPE sections in force it is always halves, see gguf_pairing().
  Pairing pairing = Pairing::halves;
  Pairing huggingface_pairing = Pairing::halves;  // converters reorder the weights of some
  // Tested in stock libllama with a small model that has such a tensor
  // (tests/integration/factors_test.cpp).
  FactorSupport factors = FactorSupport::refused;
  LayerRule layers = {};
  Trait traits = Trait::none;
  // Why no plan can be applied, the end of "architecture NAME cannot be extended: "; empty where
  // one can.
  std::string unsupported = {};
  int rotary_divisor = 1;  // rope.dimension_count is this many times what is rotated

  bool has(Trait trait) const { return (unsigned(traits) & unsigned(trait)) != 0; }
};

std::span<const Architecture> architectures();

// nullptr where the table has no such row.
const Architecture* find_architecture(std::string_view name);
const Architecture* find_huggingface(std::string_view model_type);

Pairing gguf_pairing(const Architecture& architecture, bool has_mrope_sections);

// What a file says about its layers, in llama.cpp's words; -1 or empty: not said. Arrays hold one
// entry per layer; entries for draft layers are ignored.
struct LayerKeys {
  int layers = 0;             // block_count
  int draft_layers = 0;       // nextn_predict_layers: the last of `layers`, never run
  int loops = 1;              // num_loops: how often the whole stack runs, each with its own keys
  std::vector<int> kv_heads;  // one per layer, or one for all
  int shared_kv_layers = 0;   // attention.shared_kv_layers: this many at the end own no keys
  int leading_dense = 0;      // leading_dense_block_count
  std::int64_t train_length = 0;  // context_length
  int sliding_window = -1;        // attention.sliding_window
  std::vector<bool> windowed;     // attention.sliding_window_pattern as an array, layer_types
  int window_period = -1;         // attention.sliding_window_pattern as a number
  std::vector<bool> rotated;      // attention.rope_pattern, no_rope_layers (which lists rotation)
  int unrotated_period = -1;      // no_rope_layer_interval
  bool rope_finetuned = true;     // rope.scaling.finetuned, true where absent
  std::vector<bool> recurrent;    // attention.recurrent_layers, layer_types
  int attention_period = -1;      // full_attention_interval
  std::vector<bool> indexed;      // attention.indexer.types, attention.compress_ratios above 0
};

// Tokens that a windowed layer looks back on; 0 where no layer has a window. Throws as layers_of().
int window_of(const Architecture& architecture, const LayerKeys& keys);

// Every layer that runs, in order. Throws Error: unsupported, with the reason, where no layer takes
// a plan; corrupt where the keys contradict each other.
std::vector<Layer> layers_of(const Architecture& architecture, const LayerKeys& keys);

}  // namespace mrrope
