// SPDX-License-Identifier: Apache-2.0
#include "engine/llama/graph/keys.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "engine/llama/devices.h"
#include "engine/llama/graph/inject.h"
#include "mrrope/rotary.h"

namespace mrrope::engine {

namespace {

// Rows in F32 that are worked on at once, per layer: what a turn takes beyond the cache itself.
constexpr std::size_t kWorkBytes = 16 << 20;

// Positions whose cosines and sines are made at once, and those that a thread then turns at a time.
constexpr std::size_t kTableRows = 8192;
constexpr std::size_t kSliceRows = 512;

// Runs of neighbouring cells: each is a launch per layer, so that a graph is faster beyond these.
constexpr std::size_t kMaxLaunches = 16;

// Used for a pair that does not move. Finite: a device may compute x / infinity * 0.
constexpr float kStandStill = 1e30F;

// No key looks like this in all of its elements, whatever its type.
constexpr std::uint8_t kFiller = 0xA5;

int pairing_mode(const Rotation& r) {
  return pairing_of(r) == Pairing::interleaved ? GGML_ROPE_TYPE_NORMAL : GGML_ROPE_TYPE_NEOX;
}

std::optional<Element> element_of(const KeyCache& cache) {
  const ggml_type type = cache.tensor->type;
  if (!cache.mix.empty()) return std::nullopt;
  if (type == GGML_TYPE_F32) return Element::f32;
  if (type == GGML_TYPE_F16) return Element::f16;
  if (type == GGML_TYPE_BF16) return Element::bf16;
  return std::nullopt;
}

// Calls use(cell, index, count) for every run of neighbouring cells.
template <typename Use>
void each_run(std::span<const std::int32_t> cells, const Use& use) {
  for (std::size_t first = 0; first < cells.size();) {
    std::size_t end = first + 1;
    while (end < cells.size() && cells[end] == cells[end - 1] + 1) ++end;
    use(std::size_t(cells[first]), first, end - first);
    first = end;
  }
}

// Calls use(batch) for every run of neighbouring cells; cells[0] holds the key of position first.
template <typename Use>
void for_each_batch(const KeyCache& cache, int head_dim, std::span<const std::int32_t> cells,
                    std::int64_t first, const Use& use) {
  each_run(cells, [&](std::size_t cell, std::size_t index, std::size_t count) {
    Batch batch;
    batch.element = *element_of(cache);
    batch.head_dim = head_dim;
    batch.tokens = std::int64_t(count);
    batch.first_position = first + std::int64_t(index);
    std::byte* row = static_cast<std::byte*>(cache.tensor->data) + cell * cache.tensor->nb[1];
    batch.keys = in_place(row, cache.heads, token_major(batch.tokens, cache.heads, head_dim));
    use(batch);
  });
}

std::vector<std::uint8_t> read_rows(const ggml_tensor* cache, std::span<const std::int32_t> cells) {
  const std::size_t row = cache->nb[1];
  std::vector<std::uint8_t> rows(cells.size() * row);
  each_run(cells, [&](std::size_t cell, std::size_t index, std::size_t count) {
    ggml_backend_tensor_get(cache, rows.data() + index * row, cell * row, count * row);
  });
  return rows;
}

void write_rows(ggml_tensor* cache, std::span<const std::int32_t> cells,
                const std::vector<std::uint8_t>& rows) {
  const std::size_t row = cache->nb[1];
  each_run(cells, [&](std::size_t cell, std::size_t index, std::size_t count) {
    ggml_backend_tensor_set(cache, rows.data() + index * row, cell * row, count * row);
  });
}

// The number of a device of ggml's CUDA backend, or -1.
int cuda_device(ggml_backend_dev_t device) {
  const std::string_view name = device != nullptr ? ggml_backend_dev_name(device) : "";
  int number = -1;
  if (name.starts_with("CUDA")) std::from_chars(name.data() + 4, name.data() + name.size(), number);
  return number;
}

// CUDA's half of the kernels, which is in the program or came with the device. Null: neither.
TurnKeys* turn_keys_on([[maybe_unused]] ggml_backend_dev_t device) {
#ifdef MRROPE_ENGINE_CUDA
  return &mrrope_turn_keys;
#else
  return reinterpret_cast<TurnKeys*>(symbol_of(device, "mrrope_turn_keys"));
#endif
}

ggml_tensor* mixed(ggml_context* c, ggml_tensor* rows, ggml_tensor* mix) {
  if (mix == nullptr) return rows;
  ggml_tensor* blocks = ggml_reshape_2d(c, rows, mix->ne[0], ggml_nelements(rows) / mix->ne[0]);
  return ggml_reshape_2d(c, ggml_mul_mat(c, mix, blocks), rows->ne[0], rows->ne[1]);
}

std::vector<double> theta_under(const Rotation& r, const RotaryEdit& edit) {
  Rotation edited = r;
  edited.factors = edit.factors;
  edited.scale = edit.scale;
  edited.ext = edit.ext;
  std::vector<double> theta = theta_of(edit.unmodified ? r : edited);
  for (std::size_t i = 0; i < r.fixed_pairs.size(); ++i) {
    if (r.fixed_pairs[i]) theta[i] = 0;
  }
  return theta;
}

// What divides a node's bare theta so that it turns pair i by angles[i] per position.
std::vector<float> divisors_of(const Rotation& r, const std::vector<double>& angles) {
  std::vector<float> divisors(std::size_t(r.row / 2), kStandStill);
  for (std::size_t i = 0; i < angles.size(); ++i) {
    if (angles[i] == 0) continue;
    divisors[i] = float(bare_theta(r, int(i)) / angles[i]);
  }
  return divisors;
}

bool any(const std::vector<double>& angles) {
  return std::ranges::any_of(angles, [](double angle) { return angle != 0; });
}

// Whether the same edit makes the same of both.
bool alike(const Rotation& a, const Rotation& b) {
  const auto parts = [](const Rotation& r) {
    return std::tie(r.rotary_dim, r.row, r.mode, r.original_length, r.base, r.scale, r.ext,
                    r.attention, r.beta_fast, r.beta_slow, r.factors, r.fixed_pairs);
  };
  return parts(a) == parts(b);
}

// Per row: its number, then the filler.
std::vector<std::uint8_t> marks_of(std::size_t count, std::size_t row) {
  std::vector<std::uint8_t> all(count * row, kFiller);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::memcpy(all.data() + i * row, &i, std::min(sizeof i, row));
  }
  return all;
}

// The cells that hold the marks, in their order; nothing unless each is in one cell.
std::optional<std::vector<std::int32_t>> find_marks(const ggml_tensor* cache, std::size_t wanted) {
  constexpr std::size_t kAtOnce = 1 << 24;  // bytes
  const std::size_t row = cache->nb[1];
  const std::vector<std::uint8_t> marks = marks_of(wanted, row);
  std::vector<std::int32_t> found(wanted, -1);
  const auto total = std::size_t(ggml_nrows(cache));
  const std::size_t step = std::max<std::size_t>(1, kAtOnce / row);
  std::vector<std::uint8_t> part;
  for (std::size_t first = 0; first < total; first += step) {
    part.resize(std::min(step, total - first) * row);
    ggml_backend_tensor_get(cache, part.data(), first * row, part.size());
    for (std::size_t i = 0; i < part.size() / row; ++i) {
      std::uint32_t number = 0;
      std::memcpy(&number, part.data() + i * row, std::min(sizeof number, row));
      if (number >= wanted ||
          std::memcmp(part.data() + i * row, marks.data() + number * row, row) != 0) {
        continue;
      }
      if (found[number] >= 0) return std::nullopt;
      found[number] = std::int32_t(first + i);
    }
  }
  if (has(found, -1)) return std::nullopt;
  return found;
}

}  // namespace

StoredRotation stored_rotation(const ggml_tensor* set_rows) {
  constexpr int kMostSteps = 12;
  StoredRotation found;
  const ggml_tensor* node = set_rows->src[0];
  for (int step = 0; node != nullptr && step < kMostSteps; ++step) {
    switch (node->op) {
      case GGML_OP_ROPE:
        found.rotation = node;
        return found;
      case GGML_OP_VIEW:
      case GGML_OP_RESHAPE:
      case GGML_OP_PERMUTE:
      case GGML_OP_TRANSPOSE:
      case GGML_OP_CONT:
      case GGML_OP_RMS_NORM:  // over a head: a rotation does not change its length
        node = node->src[0];
        break;
      case GGML_OP_MUL_MAT:
        if (found.mix != nullptr || std::strstr(node->src[0]->name, "k_rot") == nullptr) return {};
        found.mix = node->src[0];
        node = node->src[1];
        break;
      default:
        return {};
    }
  }
  return {};
}

KeyTurner::KeyTurner(std::vector<KeyCache> caches, const std::vector<Rotation>& rotations,
                     int threads)
    : caches_(std::move(caches)), rotations_(rotations) {
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    sites_[device_of(ggml_backend_buffer_get_type(caches_[i].tensor->buffer))].caches.push_back(i);
    std::size_t first = 0;
    while (!alike(rotations_[caches_[first].rotation], rotations_[caches_[i].rotation])) ++first;
    first_alike_.push_back(first);
  }
  for (auto& [device, site] : sites_) {
    const auto plain = [&](std::size_t i) { return element_of(caches_[i]).has_value(); };
    const bool all_plain = std::ranges::all_of(site.caches, plain);
    site.host = all_plain && ggml_backend_buffer_is_host(caches_[site.caches[0]].tensor->buffer);
    if (site.host) {
      workers_.emplace(std::max(1, threads));
      continue;
    }
    if (all_plain && cuda_device(device) >= 0) site.turn_keys = turn_keys_on(device);
    if (device != nullptr) site.backend.reset(ggml_backend_dev_init(device, nullptr));
    const char* name = device != nullptr ? ggml_backend_dev_name(device) : "an unknown device";
    unsupported_if(!site.backend, cat("cached keys cannot be turned on ", name));
    auto* set_threads =
        reinterpret_cast<ggml_backend_set_n_threads_t>(ggml_backend_reg_get_proc_address(
            ggml_backend_dev_backend_reg(device), "ggml_backend_set_n_threads"));
    if (set_threads != nullptr) set_threads(site.backend.get(), threads);
    std::vector<Turn> both;  // steps
    for (const std::size_t first : first_alike_) both.push_back({{{1}, {1}}, first});
    const Graph g = build(site, 2, both);
    for (int i = 0; i < ggml_graph_n_nodes(g.graph); ++i) {
      const ggml_tensor* node = ggml_graph_node(g.graph, i);
      if (ggml_backend_supports_op(site.backend.get(), node)) continue;
      unsupported(
          cat("keys of type ", ggml_type_name(caches_[site.caches[0]].tensor->type),
              " cannot be turned on ", name, ", which has no ", ggml_op_desc(node), " for them"),
          "give -ctk f16, or a plan that does not grow");
    }
    site.allocator.reset(
        ggml_gallocr_new(ggml_backend_get_default_buffer_type(site.backend.get())));
  }
}

KeyTurner::~KeyTurner() = default;

// Layers that turn alike share their divisors: each is a copy to the device that a turn waits for.
KeyTurner::Graph KeyTurner::build(const Site& site, std::size_t count,
                                  const std::vector<Turn>& turns) const {
  constexpr std::size_t kNodesPerCache = 20;
  const std::size_t nodes = kNodesPerCache * site.caches.size() + 8;
  Graph g;
  g.context.reset(ggml_init(
      {nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes, false), nullptr, true}));
  ggml_context* c = g.context.get();
  g.graph = ggml_new_graph_custom(c, nodes, false);
  const auto n = std::int64_t(count);
  const auto input = [&](ggml_type type, std::int64_t width, std::int64_t height) {
    ggml_tensor* tensor = ggml_new_tensor_2d(c, type, width, height);
    ggml_set_input(tensor);
    return tensor;
  };
  g.rows = input(GGML_TYPE_I32, n, 1);
  const auto has_theta = [](const Turn& turn) { return any(turn.angles.theta); };
  const auto has_phase = [](const Turn& turn) { return any(turn.angles.phase); };
  if (std::ranges::any_of(turns, has_theta)) g.positions = input(GGML_TYPE_I32, n, 1);
  // Where only the length changes, this step does it.
  if (g.positions == nullptr || std::ranges::any_of(turns, has_phase)) {
    g.ones = input(GGML_TYPE_I32, n, 1);
  }
  std::map<std::size_t, GraphPart> shared;  // divisors, by what they are like
  for (const std::size_t i : site.caches) {
    const KeyCache& cache = caches_[i];
    const Rotation& r = rotations_[cache.rotation];
    GraphPart part;
    part.keys =
        ggml_new_tensor_2d(c, cache.tensor->type, cache.tensor->ne[0], ggml_nrows(cache.tensor));
    if (!cache.mix.empty()) {
      const auto side = std::int64_t(std::lround(std::sqrt(cache.mix.size())));
      part.mix = input(GGML_TYPE_F32, side, side);
    }
    ggml_tensor* rows = mixed(c, ggml_get_rows(c, part.keys, g.rows), part.mix);
    ggml_tensor* turned = ggml_reshape_3d(c, rows, r.row, cache.heads, n);
    auto length = float(turns[i].angles.scale);
    // Returns the divisors if they are new.
    const auto turn = [&](ggml_tensor* positions, ggml_tensor*& divisors) -> ggml_tensor* {
      if (positions == nullptr) return nullptr;
      const bool fresh = divisors == nullptr;
      if (fresh) divisors = input(GGML_TYPE_F32, r.row / 2, 1);
      turned = ggml_rope_ext(c, turned, positions, divisors, r.rotary_dim, pairing_mode(r), 0,
                             r.base, 1, 0, std::exchange(length, 1.0F), 0, 0);
      return fresh ? divisors : nullptr;
    };
    GraphPart& divisors = shared[turns[i].like];
    part.theta = turn(g.positions, divisors.theta);
    part.phase = turn(g.ones, divisors.phase);
    turned = mixed(c, ggml_reshape_2d(c, turned, rows->ne[0], n), part.mix);
    ggml_build_forward_expand(g.graph, ggml_set_rows(c, part.keys, turned, g.rows));
    g.parts.push_back(part);
  }
  return g;
}

bool KeyTurner::Turn::moves() const {
  return angles.scale != 1 || any(angles.theta) || any(angles.phase);
}

void KeyTurner::turn(std::span<const std::int32_t> cells, const KeyState& from,
                     const KeyState& to) {
  const auto count = std::int64_t(cells.size());
  const std::int64_t first = std::min({from.border, to.border, count});
  const std::int64_t second = std::min(std::max(from.border, to.border), count);
  turn_range(cells, 0, first, from, to);
  turn_range(cells, first, second, from, to);
  turn_range(cells, second, count, from, to);
}

// All keys of the range are on one side of either border.
void KeyTurner::turn_range(std::span<const std::int32_t> cells, std::int64_t first,
                           std::int64_t end, const KeyState& from, const KeyState& to) {
  if (first >= end) return;
  const auto same_edits = [&](std::size_t a, std::size_t b) {
    for (const KeyState* state : {&from, &to}) {
      for (const RotarySetting* setting : {state->near, state->far}) {
        if (setting != nullptr && setting->edit_of.at(a) != setting->edit_of.at(b)) return false;
      }
    }
    return true;
  };
  std::vector<Turn> turns(caches_.size());
  bool moves = false;
  std::size_t row = 1;
  for (std::size_t n = 0; n < caches_.size(); ++n) {
    const std::size_t index = caches_[n].rotation;
    const Rotation& r = rotations_[index];
    Turn& turn = turns[n];
    row = std::max(row, std::size_t(caches_[n].tensor->ne[0]));
    if (const std::size_t first_n = first_alike_[n];
        first_n < n && same_edits(caches_[first_n].rotation, index)) {
      turn = turns[first_n];
      continue;
    }
    const std::vector<double> none(std::size_t(r.rotary_dim / 2), 0);
    turn = {{none, none, 1, pairing_of(r)}, n};
    const auto add = [&](const KeyState& state, double sign) -> double {
      const RotaryEdit& near = state.near->edits.at(state.near->edit_of.at(index));
      const std::vector<double> theta = theta_under(r, near);
      const bool far = first < state.border;
      const RotaryEdit& edit = far ? state.far->edits.at(state.far->edit_of.at(index)) : near;
      const std::vector<double> own = far ? theta_under(r, edit) : theta;
      for (std::size_t i = 0; i < own.size(); ++i) {
        const double constant = !far             ? -double(state.shift) * theta[i]
                                : state.anchored ? double(state.border) * (theta[i] - own[i])
                                                 : 0;
        turn.angles.theta[i] += sign * own[i];
        turn.angles.phase[i] += sign * constant;
      }
      return double(edit.attention);
    };
    const double length = add(from, -1);
    turn.angles.scale = add(to, 1) / length;
    // Floats keep few digits of many turns.
    for (double& angle : turn.angles.phase) angle = std::remainder(angle, 2 * std::numbers::pi);
    moves = moves || turn.moves();
  }
  if (!moves) return;
  const std::span<const std::int32_t> range =
      cells.subspan(std::size_t(first), std::size_t(end - first));
  const std::size_t most = std::max<std::size_t>(1, kWorkBytes / (row * sizeof(float)));
  std::size_t runs = 0;
  each_run(range, [&](std::size_t, std::size_t, std::size_t) { ++runs; });
  for (auto& [device, site] : sites_) {
    if (site.host) {
      turn_on_host(site, range, first, turns);
    } else if (site.turn_keys != nullptr && runs <= kMaxLaunches) {
      turn_on_gpu(site, cuda_device(device), range, first, turns);
    } else {
      for (std::size_t at = 0; at < range.size(); at += most) {
        turn_by_graph(site, range.subspan(at, std::min(most, range.size() - at)),
                      first + std::int64_t(at), turns);
      }
    }
  }
}

void KeyTurner::turn_on_host(const Site& site, std::span<const std::int32_t> cells,
                             std::int64_t first, const std::vector<Turn>& turns) {
  for (std::size_t at = 0; at < cells.size(); at += kTableRows) {
    const std::span<const std::int32_t> some =
        cells.subspan(at, std::min(kTableRows, cells.size() - at));
    const std::int64_t position = first + std::int64_t(at);
    std::map<std::size_t, RotaryTable> tables;  // by what they are like
    for (const std::size_t i : site.caches) {
      if (tables.contains(turns[i].like) || !turns[i].moves()) continue;
      tables.emplace(turns[i].like,
                     RotaryTable(turns[i].angles, position, position + std::int64_t(some.size())));
    }
    const std::size_t slices = (some.size() + kSliceRows - 1) / kSliceRows;
    workers_->run(int(site.caches.size() * slices), [&](int part) {
      const std::size_t i = site.caches[std::size_t(part) / slices];
      const std::size_t begin = std::size_t(part) % slices * kSliceRows;
      const auto table = tables.find(turns[i].like);
      if (table == tables.end()) return;
      for_each_batch(caches_[i], rotations_[caches_[i].rotation].row,
                     some.subspan(begin, std::min(kSliceRows, some.size() - begin)),
                     position + std::int64_t(begin),
                     [&](const Batch& batch) { rotate(table->second, batch); });
    });
  }
}

void KeyTurner::turn_on_gpu(const Site& site, int gpu, std::span<const std::int32_t> cells,
                            std::int64_t first, const std::vector<Turn>& turns) const {
  std::map<std::size_t, std::vector<Batch>> batches;  // by what they are like
  for (const std::size_t i : site.caches) {
    if (!turns[i].moves()) continue;
    for_each_batch(caches_[i], rotations_[caches_[i].rotation].row, cells, first,
                   [&](const Batch& batch) { batches[turns[i].like].push_back(batch); });
  }
  for (const auto& [like, some] : batches) {
    site.turn_keys(turns[like].angles, some, gpu);
  }
}

void KeyTurner::turn_by_graph(Site& site, std::span<const std::int32_t> cells, std::int64_t first,
                              const std::vector<Turn>& turns) {
  const Graph g = build(site, cells.size(), turns);
  for (std::size_t n = 0; n < site.caches.size(); ++n) {
    ggml_tensor* cache = caches_[site.caches[n]].tensor;
    fail_if(ggml_backend_tensor_alloc(cache->buffer, g.parts[n].keys, cache->data) !=
                GGML_STATUS_SUCCESS,
            "a cache of keys cannot be turned where it is");
  }
  throw_if(!ggml_gallocr_alloc_graph(site.allocator.get(), g.graph), ErrorKind::out_of_memory,
           cat("no room to turn ", cells.size(), " cached keys from one plan to the next"),
           "give a smaller --ctx, or a plan that does not grow");
  ggml_backend_tensor_set(g.rows, cells.data(), 0, cells.size_bytes());
  if (g.ones != nullptr) {
    const std::vector<std::int32_t> ones(cells.size(), 1);
    ggml_backend_tensor_set(g.ones, ones.data(), 0, ggml_nbytes(g.ones));
  }
  if (g.positions != nullptr) {
    std::vector<std::int32_t> positions(cells.size());
    std::iota(positions.begin(), positions.end(), std::int32_t(first));
    ggml_backend_tensor_set(g.positions, positions.data(), 0, ggml_nbytes(g.positions));
  }
  for (std::size_t n = 0; n < site.caches.size(); ++n) {
    const std::size_t index = site.caches[n];
    const Rotation& r = rotations_[caches_[index].rotation];
    const auto set = [&](ggml_tensor* tensor, const std::vector<double>& angles) {
      if (tensor == nullptr) return;
      const std::vector<float> values = divisors_of(r, angles);
      ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
    };
    const GraphPart& part = g.parts[n];
    set(part.theta, turns[index].angles.theta);
    set(part.phase, turns[index].angles.phase);
    if (part.mix != nullptr) {
      ggml_backend_tensor_set(part.mix, caches_[index].mix.data(), 0, ggml_nbytes(part.mix));
    }
  }
  fail_if(ggml_backend_graph_compute(site.backend.get(), g.graph) != GGML_STATUS_SUCCESS,
          "the device failed to turn cached keys");
}

std::optional<std::vector<std::int32_t>> cells_after(const std::vector<KeyCache>& caches,
                                                     std::span<const std::int32_t> cells,
                                                     const std::function<bool()>& save,
                                                     const std::function<bool()>& restore) {
  std::vector<std::vector<std::uint8_t>> rows;  // per cache, while marks take their place
  for (const KeyCache& cache : caches) {
    rows.push_back(read_rows(cache.tensor, cells));
    write_rows(cache.tensor, cells, marks_of(cells.size(), cache.tensor->nb[1]));
  }
  const bool saved = save();
  for (std::size_t i = 0; i < caches.size(); ++i) write_rows(caches[i].tensor, cells, rows[i]);
  if (!saved || !restore()) return std::nullopt;
  auto found = find_marks(caches.front().tensor, cells.size());
  for (std::size_t i = 0; i < caches.size(); ++i) {
    ggml_tensor* const cache = caches[i].tensor;
    if (!found || read_rows(cache, *found) != marks_of(found->size(), cache->nb[1])) {
      return std::nullopt;
    }
    write_rows(cache, *found, rows[i]);
  }
  return found;
}

}  // namespace mrrope::engine
