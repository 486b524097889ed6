// SPDX-License-Identifier: Apache-2.0
// The cached keys of a context, and turning them from one plan to another where they are.
//
// A key of position m that was rotated under plan A becomes one rotated under plan B by a further
// rotation of pair i by m * (theta_B,i - theta_A,i), and by a constant where a border or a shift
// moves. Keys of f32, f16 and bf16 are turned in place by src/kernels, in memory of the host and of
// NVIDIA GPUs. For all others it is a small ggml graph of our own over the cache's tensors, on the
// device that holds them: rows of some cells are read as F32, rotated and written back in the
// cache's type. Temperatures stay out of it, since under a ladder they are on the queries' side,
// except for those of far keys.
//
// libllama's own K-shift is not used: it rotates every cell and layers without RoPE too, multiplies
// by the temperature again, needs types that its kernels rotate, and reserves a graph each time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/llama/loader.h"
#include "kernels/cuda/turn_keys.h"
#include "mrrope/rotary.h"

namespace mrrope::engine {

struct Rotation;
struct RotaryEdit;
struct RotarySetting;

// How the cached keys of a timeline are rotated on one rung.
struct KeyState {
  const RotarySetting* near = nullptr;  // what decodes write into the nodes of the keys
  std::int64_t shift = 0;               // near keys are rotated for position - shift
  std::int64_t border = 0;              // keys of earlier positions are far
  const RotarySetting* far = nullptr;   // of far keys, if there are any
  // Far keys are seen from the border: theta_far * m + border * (theta_near - theta_far); otherwise
  // they are rotated for their positions, theta_far * m, and the shift does the rest.
  bool anchored = false;
};

// Where one layer's rotated keys go.
struct KeyCache {
  // [heads * row, cells], or as many of these as there are timelines.
  ggml_tensor* tensor = nullptr;
  std::size_t rotation = 0;  // whose result is stored
  int heads = 0;
  // Not empty: libllama multiplies keys by this square, symmetric and orthogonal matrix before it
  // stores them, to quantise them better.
  std::vector<float> mix;
};

// The rotation whose result a SET_ROWS node stores unchanged, and the mixing matrix it passes, or
// null: values, or keys that something else happens to after their rotation.
struct StoredRotation {
  const ggml_tensor* rotation = nullptr;
  const ggml_tensor* mix = nullptr;
};
StoredRotation stored_rotation(const ggml_tensor* set_rows);

class KeyTurner {
 public:
  // Throws Error (unsupported) where a device cannot turn keys of their type.
  KeyTurner(std::vector<KeyCache> caches, const std::vector<Rotation>& rotations, int threads);
  ~KeyTurner();

  // cells[p] holds the key of position p, rotated as in `from`. Waits until all are turned. Throws
  // Error: out_of_memory, failed; keys may then be in either state.
  void turn(std::span<const std::int32_t> cells, const KeyState& from, const KeyState& to);

  const std::vector<KeyCache>& caches() const noexcept { return caches_; }

 private:
  // One device and the caches that live there.
  struct Site {
    bool host = false;               // keys that src/kernels turns in memory of the host,
    TurnKeys* turn_keys = nullptr;   // or of a GPU
    LlamaPtr<ggml_backend> backend;  // of graphs
    LlamaPtr<ggml_gallocr> allocator;
    std::vector<std::size_t> caches;
  };

  // What happens to the keys of a range of positions in one cache: further angles.
  struct Turn {
    RotaryAngles angles;   // phases of all pairs
    std::size_t like = 0;  // the first cache with the same turn
    bool moves() const;
  };
  // A turn on a device, in a step by theta and one by phase: divisors of the node's own theta are
  // null where there is no such step, or where those of an earlier part serve.
  struct GraphPart {
    ggml_tensor *keys = nullptr, *theta = nullptr, *phase = nullptr, *mix = nullptr;
  };
  struct Graph {
    LlamaPtr<ggml_context> context;
    ggml_cgraph* graph = nullptr;
    ggml_tensor* rows = nullptr;       // I32: cells to read
    ggml_tensor* positions = nullptr;  // I32; null: no angle grows with the position
    ggml_tensor* ones = nullptr;       // I32: as many positions of 1; null: no other angles
    std::vector<GraphPart> parts;      // per cache
  };
  Graph build(const Site& site, std::size_t count, const std::vector<Turn>& turns) const;
  void turn_range(std::span<const std::int32_t> cells, std::int64_t first, std::int64_t end,
                  const KeyState& from, const KeyState& to);
  void turn_on_host(const Site& site, std::span<const std::int32_t> cells, std::int64_t first,
                    const std::vector<Turn>& turns);
  void turn_on_gpu(const Site& site, int gpu, std::span<const std::int32_t> cells,
                   std::int64_t first, const std::vector<Turn>& turns) const;
  void turn_by_graph(Site& site, std::span<const std::int32_t> cells, std::int64_t first,
                     const std::vector<Turn>& turns);

  std::vector<KeyCache> caches_;
  std::vector<std::size_t> first_alike_;  // per cache: the first one whose rotation is alike
  const std::vector<Rotation>& rotations_;
  std::map<ggml_backend_dev_t, Site> sites_;
  std::optional<Workers> workers_;  // where keys are turned in host memory
};

// Where libllama puts a sequence that it restores, which it does not say: the keys are saved with
// their numbers in place of their content, and found by them. cells[p] is the cell of position p.
// Nothing where one of the two fails, or where layers keep a token in different cells.
std::optional<std::vector<std::int32_t>> cells_after(const std::vector<KeyCache>& caches,
                                                     std::span<const std::int32_t> cells,
                                                     const std::function<bool()>& save,
                                                     const std::function<bool()>& restore);

}  // namespace mrrope::engine
