// SPDX-License-Identifier: Apache-2.0
// Rotation of queries and keys. A RotaryTable holds the cosines and sines of a plan; rotate()
// applies it to a batch at the speed of memory and never asks which method made it. For NVIDIA GPUs
// see rotary_cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mrrope/plan.h"

namespace mrrope {

// How numbers are stored; sums are formed in f32 whatever the storage.
enum class Element { f32, f16, bf16 };

const char* to_string(Element element) noexcept;
std::size_t bytes_of(Element element) noexcept;

// Pair i turns by theta[i] * position + phase[i] radians and becomes `scale` times as long.
struct RotaryAngles {
  std::vector<double> theta;
  std::vector<double> phase;  // empty: zeros
  double scale = 1;
  Pairing pairing = Pairing::halves;
};

// Cosines and sines of a plan for the positions [first, end), multiplied by the plan's and the
// model's attention scale: one row per position, pairs() cosines and then pairs() sines. Computed
// in double and rounded once. Any number of threads may read a table; grow() needs exclusive
// access.
class RotaryTable {
 public:
  // Throws Error (usage) unless 0 <= first <= end <= 2^31.
  RotaryTable(const Plan& plan, std::int64_t first, std::int64_t end,
              Element element = Element::f32);
  RotaryTable(RotaryAngles angles, std::int64_t first, std::int64_t end,
              Element element = Element::f32);

  // The table that takes keys rotated under `from` to keys rotated under `to`, in place: what a
  // cache needs when the plan changes. Throws Error (usage) if the plans differ in rotary_dim or
  // pairing.
  static RotaryTable turning(const Plan& from, const Plan& to, std::int64_t first, std::int64_t end,
                             Element element = Element::f32);

  // Adds rows up to `end`; does nothing if they are there.
  void grow(std::int64_t end);

  int pairs() const noexcept { return int(angles_.theta.size()); }
  Pairing pairing() const noexcept { return angles_.pairing; }
  Element element() const noexcept { return element_; }
  std::int64_t first() const noexcept { return first_; }
  std::int64_t end() const noexcept { return end_; }
  double scale() const noexcept { return angles_.scale; }
  const RotaryAngles& angles() const noexcept { return angles_; }  // phases of all pairs

  // rotary_dim elements; 64-byte aligned at position first(). Not checked.
  const void* row(std::int64_t position) const noexcept {
    return rows_.get() + std::size_t(position - first_) * row_bytes_;
  }

 private:
  struct Free {
    void operator()(std::byte* rows) const noexcept;
  };
  RotaryAngles angles_;
  Element element_ = Element::f32;
  std::int64_t first_ = 0;
  std::int64_t end_ = 0;
  std::int64_t capacity_ = 0;  // rows
  std::size_t row_bytes_ = 0;
  std::unique_ptr<std::byte[], Free> rows_;
};

// Where a head is: sequence s, token t, head h begins s * sequence + t * token + h * head
// elements after the first. Strides of a dimension of size 1 are not read.
struct Strides {
  std::int64_t sequence = 0;
  std::int64_t token = 0;
  std::int64_t head = 0;
};

// [sequence][token][head][element], as projections write it.
constexpr Strides token_major(std::int64_t tokens, int heads, int head_dim) noexcept {
  return {tokens * heads * head_dim, std::int64_t(heads) * head_dim, head_dim};
}
// [sequence][head][token][element], as many caches keep it.
constexpr Strides head_major(std::int64_t tokens, int heads, int head_dim) noexcept {
  return {tokens * heads * head_dim, head_dim, tokens * head_dim};
}

// The query heads or the key heads of a batch. `to` equals `from` with equal strides (in place), or
// the two do not overlap.
struct Heads {
  int count = 0;  // 0: none, and nothing else is read
  const void* from = nullptr;
  Strides from_strides{};
  void* to = nullptr;
  Strides to_strides{};
};

constexpr Heads in_place(void* data, int count, Strides strides) noexcept {
  return {count, data, strides, data, strides};
}

// One call's work.
struct Batch {
  Element element = Element::f32;  // of queries and keys
  int head_dim = 0;  // at least the table's rotary_dim; elements past that are only copied
  std::int64_t sequences = 1;
  std::int64_t tokens = 0;  // of each sequence
  Heads queries{};
  Heads keys{};
  // sequences * tokens positions, in any order; null: every sequence counts up from first_position.
  const std::int32_t* positions = nullptr;
  std::int64_t first_position = 0;
  bool inverse = false;  // undoes the same call without `inverse`
};

// Threads that wait for work. One rotate() at a time.
class Workers {
 public:
  // The calling thread is one of them. Throws Error (usage) unless 1 <= threads <= 1024.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const noexcept;
  // Calls part(0), ..., part(parts - 1) and returns when all have returned. They must not throw.
  template <typename Part>
  void run(int parts, Part part) noexcept {
    run_all(parts, &part, [](void* own, int index) { (*static_cast<Part*>(own))(index); });
  }

 private:
  void run_all(int parts, void* context, void (*part)(void* context, int index)) noexcept;

  struct State;
  std::unique_ptr<State> state_;
};

// Rotates queries and keys. Throws Error (usage) before anything is written: on null pointers, on
// strides that overlap, on a table that does not fit the heads, on a position outside the table.
// Allocates nothing.
void rotate(const RotaryTable& table, const Batch& batch);
void rotate(const RotaryTable& table, const Batch& batch, Workers& workers);
// The share of one of `parts` threads of the caller, part 0 to parts - 1. Every part checks.
void rotate_part(const RotaryTable& table, const Batch& batch, int part, int parts);

}  // namespace mrrope
