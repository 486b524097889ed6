// SPDX-License-Identifier: Apache-2.0
// Tier 2, indexing kernels: which thread turns what. They see a table and strides, never a method.
#pragma once

#include "kernels/cuda/rotary_math.cuh"
#include "mrrope/rotary.h"

namespace mrrope::cuda {

// Everything a launch needs, by value.
struct Work {
  Heads queries;
  Heads keys;
  const std::int32_t* positions;  // null: first_position + token
  std::int32_t first_position;
  std::uint32_t tokens;  // of each sequence
  std::uint32_t rows;    // sequences * tokens * slots
  std::uint32_t slots;   // rows of one token: its heads over kHeadsPerThread, rounded up
  std::uint32_t lanes;   // threads of one row; each holds two vectors of every head
  std::uint32_t tail;    // vectors (rotate_pairs: elements) past rotary_dim, only copied
  std::uint32_t pairs;
  bool interleaved;
  // Angles: turns per position of every pair, or rows of cosines and sines for [first, end).
  const std::uint64_t* turns;
  const void* table;  // null: computed
  Element table_element;
  std::int32_t table_first;
  std::int64_t table_end;
  float cos_gain;
  float sin_gain;
  int* bad;  // set when a position has no row
};

// The fastest of nine shapes tried on an H200.
constexpr int kThreads = 128;
constexpr int kBlocks = 6;  // at once on a multiprocessor; leaves each thread 85 registers
// So that each thread has 128 bytes in flight before it uses the first.
constexpr int kHeadsPerThread = 4;

struct Place {
  std::uint32_t sequence;
  std::uint32_t token;  // of the sequence
  std::int32_t position;
};

__device__ inline Place place_of(const Work& work, std::uint32_t token) {
  Place place{0, token, 0};
  if (token >= work.tokens) {
    place.sequence = token / work.tokens;
    place.token = token - place.sequence * work.tokens;
  }
  place.position = work.positions ? work.positions[token]
                                  : work.first_position + static_cast<std::int32_t>(place.token);
  return place;
}

__device__ inline std::int64_t offset(const Strides& strides, const Place& place,
                                      std::uint32_t head) {
  return place.sequence * strides.sequence + place.token * strides.token + head * strides.head;
}

// Where a head is read and written.
template <typename T>
__device__ inline const T* source(const Work& work, const Place& place, std::uint32_t head) {
  const bool query = head < static_cast<std::uint32_t>(work.queries.count);
  const Heads& heads = query ? work.queries : work.keys;
  const std::uint32_t h = query ? head : head - work.queries.count;
  return static_cast<const T*>(heads.from) + offset(heads.from_strides, place, h);
}
template <typename T>
__device__ inline T* target(const Work& work, const Place& place, std::uint32_t head) {
  const bool query = head < static_cast<std::uint32_t>(work.queries.count);
  const Heads& heads = query ? work.queries : work.keys;
  const std::uint32_t h = query ? head : head - work.queries.count;
  return static_cast<T*>(heads.to) + offset(heads.to_strides, place, h);
}

__device__ inline bool has_row(const Work& work, std::int32_t position) {
  return !work.table || (position >= work.table_first && position < work.table_end);
}

// kCount elements in loads of up to 16 bytes; `from` is aligned to them.
template <int kCount, typename T>
__device__ inline void load(const T* from, float (&to)[kCount]) {
  constexpr int kChunk = kCount * sizeof(T) > 16 ? 16 / sizeof(T) : kCount;
  struct alignas(kChunk * sizeof(T)) Chunk {
    T x[kChunk];
  };
#pragma unroll
  for (int i = 0; i < kCount; i += kChunk) {
    const Chunk chunk = *reinterpret_cast<const Chunk*>(from + i);
#pragma unroll
    for (int j = 0; j < kChunk; ++j) to[i + j] = to_float(chunk.x[j]);
  }
}

// kCount cosines and sines from pair `first` of the stored rows.
template <int kCount>
__device__ inline void stored_turns(const Work& work, std::int32_t position, std::uint32_t first,
                                    Turn* turns) {
  float c[kCount], s[kCount];
  const std::size_t at =
      static_cast<std::size_t>(position - work.table_first) * 2 * work.pairs + first;
  const auto read = [&](const auto* table) {
    load<kCount>(table + at, c);
    load<kCount>(table + at + work.pairs, s);
  };
  switch (work.table_element) {
    case Element::f32:
      read(static_cast<const float*>(work.table));
      break;
    case Element::f16:
      read(static_cast<const __half*>(work.table));
      break;
    case Element::bf16:
      read(static_cast<const __nv_bfloat16*>(work.table));
      break;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) turns[i] = {c[i] * work.cos_gain, s[i] * work.sin_gain};
}

template <int kCount>
__device__ inline void computed_turns(const Work& work, std::int32_t position, std::uint32_t first,
                                      Turn* turns) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const Turn turn = turn_of(work.turns[first + i], position);
    turns[i] = {turn.cos * work.cos_gain, turn.sin * work.sin_gain};
  }
}

template <bool kComputed, int kCount>
__device__ inline void turns_of(const Work& work, std::int32_t position, std::uint32_t first,
                                Turn* turns) {
  if constexpr (kComputed) {
    computed_turns<kCount>(work, position, first, turns);
  } else {
    stored_turns<kCount>(work, position, first, turns);
  }
}

// A row of threads turns kHeadsPerThread heads of one token; each thread holds the same two vectors
// of every head, `lanes` vectors apart: with halves the two ends of its pairs, interleaved two runs
// of neighbours. So neighbouring threads always touch neighbouring memory, and a thread's cosines
// serve all its heads.
template <typename T, Pairing kPairing, bool kComputed>
__global__ void __launch_bounds__(kThreads, kBlocks)
    rotate_vectors(const __grid_constant__ Work work) {
  constexpr int kCount = kLanes<T>;
  const std::uint32_t row_in_block = threadIdx.x / work.lanes;
  const std::uint32_t lane = threadIdx.x - row_in_block * work.lanes;
  const std::uint32_t rows_in_block = kThreads / work.lanes;
  const std::uint32_t row = blockIdx.x * rows_in_block + row_in_block;
  if (row_in_block >= rows_in_block || row >= work.rows) return;
  const std::uint32_t token = row / work.slots;
  const std::uint32_t slot = row - token * work.slots;
  const std::uint32_t heads = work.queries.count + work.keys.count;
  const Place place = place_of(work, token);

  uint4 first[kHeadsPerThread], second[kHeadsPerThread];
#pragma unroll
  for (int u = 0; u < kHeadsPerThread; ++u) {
    const std::uint32_t head = slot + u * work.slots;
    if (head < heads) {
      const auto* from = reinterpret_cast<const uint4*>(source<T>(work, place, head));
      first[u] = from[lane];
      second[u] = from[lane + work.lanes];
    }
  }
  if (!kComputed && !has_row(work, place.position)) {
    *work.bad = 1;
    return;
  }
  Turn turns[kCount];
  if constexpr (kPairing == Pairing::halves) {
    turns_of<kComputed, kCount>(work, place.position, lane * kCount, turns);
  } else {
    constexpr int kHalf = kCount / 2;
    turns_of<kComputed, kHalf>(work, place.position, lane * kHalf, turns);
    turns_of<kComputed, kHalf>(work, place.position, (lane + work.lanes) * kHalf, turns + kHalf);
  }

#pragma unroll
  for (int u = 0; u < kHeadsPerThread; ++u) {
    const std::uint32_t head = slot + u * work.slots;
    if (head >= heads) continue;
    float a[kCount], b[kCount];
    unpack<T>(first[u], a);
    unpack<T>(second[u], b);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if constexpr (kPairing == Pairing::halves) {
        rotate_pair(a[i], b[i], turns[i]);
      } else if (i < kCount / 2) {
        rotate_pair(a[2 * i], a[2 * i + 1], turns[i]);
        rotate_pair(b[2 * i], b[2 * i + 1], turns[i + kCount / 2]);
      }
    }
    auto* to = reinterpret_cast<uint4*>(target<T>(work, place, head));
    to[lane] = pack<T>(a);
    to[lane + work.lanes] = pack<T>(b);
    for (std::uint32_t i = lane; i < work.tail; i += work.lanes) {
      const auto* from = reinterpret_cast<const uint4*>(source<T>(work, place, head));
      to[2 * work.lanes + i] = from[2 * work.lanes + i];
    }
  }
}

// For what does not fall into vectors of 16 bytes: one thread per pair, any alignment.
template <typename T>
__global__ void __launch_bounds__(kThreads) rotate_pairs(const __grid_constant__ Work work) {
  const std::uint32_t heads = work.queries.count + work.keys.count;
  const std::uint64_t per_head = work.pairs + work.tail;
  const std::uint64_t count = static_cast<std::uint64_t>(work.rows) * heads * per_head;
  for (std::uint64_t i = std::uint64_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += std::uint64_t(gridDim.x) * kThreads) {
    const std::uint64_t token_head = i / per_head;
    const auto pair = static_cast<std::uint32_t>(i - token_head * per_head);
    const auto token = static_cast<std::uint32_t>(token_head / heads);
    const auto head = static_cast<std::uint32_t>(token_head - std::uint64_t(token) * heads);
    const Place place = place_of(work, token);
    if (!has_row(work, place.position)) {
      *work.bad = 1;
      continue;
    }
    const T* from = source<T>(work, place, head);
    T* to = target<T>(work, place, head);
    if (pair >= work.pairs) {
      to[work.pairs + pair] = from[work.pairs + pair];
      continue;
    }
    Turn turn;
    if (work.table) {
      stored_turns<1>(work, place.position, pair, &turn);
    } else {
      computed_turns<1>(work, place.position, pair, &turn);
    }
    const std::uint32_t first = work.interleaved ? 2 * pair : pair;
    const std::uint32_t second = work.interleaved ? first + 1 : pair + work.pairs;
    float a = to_float(from[first]);
    float b = to_float(from[second]);
    rotate_pair(a, b, turn);
    from_float(a, to[first]);
    from_float(b, to[second]);
  }
}

}  // namespace mrrope::cuda
