// SPDX-License-Identifier: Apache-2.0
// What happens to one pair and to one vector of memory, and which thread turns what. The kernels
// see a table and strides, never a method.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "mrrope/rotary.h"

namespace mrrope::cuda {

struct Turn {
  float cos;
  float sin;
};

// Of a position times radians per position, plus a phase, all as fractions of a full turn in 64-bit
// fixed point: the product wraps around at a full turn, so the reduction is exact at any position.
// What is left is within an eighth of a turn, where two short polynomials in its square (fitted to
// minimise the largest error) are off by at most 1.3 * 2^-24.
__device__ inline Turn turn_of(std::uint64_t turns_per_position, std::int32_t position,
                               std::uint64_t phase) {
  const auto turns =
      std::uint32_t((turns_per_position * std::uint64_t(std::int64_t(position)) + phase) >> 32);
  const std::uint32_t quarter = (turns + 0x20000000u) >> 30;
  const auto rest = std::int32_t(turns - (quarter << 30));
  const float x = float(rest) * 0x1p-31f;  // in half turns
  const float z = x * x;
  float s = fmaf(z, -0.58947968f, 2.5498106f);
  s = fmaf(z, s, -5.1677094f);
  s = fmaf(z, s, -8.7422777e-8f);  // what the float below lacks of pi
  s = fmaf(x, 3.14159274f, x * s);
  float c = fmaf(z, 0.23142955f, -1.3350585f);
  c = fmaf(z, c, 4.0587077f);
  c = fmaf(z, c, -4.9348021f);
  c = fmaf(z, c, 1.0f);
  const bool odd = quarter & 1;
  const float a = odd ? -s : c;
  const float b = odd ? c : s;
  return quarter & 2 ? Turn{-a, -b} : Turn{a, b};
}

__device__ inline void rotate_pair(float& a, float& b, Turn turn) {
  const float old_a = a;
  a = old_a * turn.cos - b * turn.sin;
  b = old_a * turn.sin + b * turn.cos;
}

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline void from_float(float x, float& to) { to = x; }
__device__ inline void from_float(float x, __half& to) { to = __float2half_rn(x); }
__device__ inline void from_float(float x, __nv_bfloat16& to) { to = __float2bfloat16_rn(x); }

// What a thread reads or writes at once.
template <int kBytes>
struct alignas(kBytes) Vector {
  std::uint32_t words[kBytes / 4];
};

// Two elements in one register, to and from f32.
__device__ inline float2 unpack_two(std::uint32_t bits, __half) {
  return __half22float2(*reinterpret_cast<const __half2*>(&bits));
}
__device__ inline float2 unpack_two(std::uint32_t bits, __nv_bfloat16) {
  return {__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u)};
}
__device__ inline std::uint32_t pack_two(float2 x, __half) {
  const __half2 two = __float22half2_rn(x);
  return *reinterpret_cast<const std::uint32_t*>(&two);
}
__device__ inline std::uint32_t pack_two(float2 x, __nv_bfloat16) {
  const __nv_bfloat162 two = __float22bfloat162_rn(x);
  return *reinterpret_cast<const std::uint32_t*>(&two);
}

template <typename T, int kBytes, int kCount>
__device__ inline void unpack(const Vector<kBytes>& packed, float (&x)[kCount]) {
  static_assert(kCount * sizeof(T) == kBytes);
#pragma unroll
  for (int i = 0; i < kBytes / 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      x[i] = __uint_as_float(packed.words[i]);
    } else {
      const float2 two = unpack_two(packed.words[i], T());
      x[2 * i] = two.x;
      x[2 * i + 1] = two.y;
    }
  }
}

template <typename T, int kBytes, int kCount>
__device__ inline Vector<kBytes> pack(const float (&x)[kCount]) {
  static_assert(kCount * sizeof(T) == kBytes);
  Vector<kBytes> packed;
#pragma unroll
  for (int i = 0; i < kBytes / 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      packed.words[i] = __float_as_uint(x[i]);
    } else {
      packed.words[i] = pack_two({x[2 * i], x[2 * i + 1]}, T());
    }
  }
  return packed;
}

// Turns per position of every pair, or rows of cosines and sines for `rows` positions from first.
struct Angles {
  const std::uint64_t* turns;
  const std::uint64_t* phases;  // turns at position 0; null: none
  const void* table;            // null: computed
  std::uint32_t pairs;
  Element element;
  std::int32_t first;
  std::uint32_t rows;
  float cos_gain;
  float sin_gain;
  int* bad;  // set when a position has no row
};

// Which tokens.
struct Places {
  const std::int32_t* positions;  // null: first_position + token
  std::int32_t first_position;
  std::uint32_t tokens;  // of each sequence
};

struct Place {
  std::uint32_t sequence;
  std::uint32_t token;  // of the sequence
  std::int32_t position;
};

__device__ inline Place place_of(const Places& places, std::uint32_t token) {
  Place place{0, token, 0};
  if (token >= places.tokens) {
    place.sequence = token / places.tokens;
    place.token = token - place.sequence * places.tokens;
  }
  place.position = places.positions ? places.positions[token]
                                    : places.first_position + std::int32_t(place.token);
  return place;
}

__device__ inline bool has_row(const Angles& angles, std::int32_t position) {
  return position >= angles.first && std::uint32_t(position - angles.first) < angles.rows;
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

// Cosines and sines of kCount pairs: kRun in a row from pair `first`, and the others, if there are
// any, from pair `second`. All loads of a row come before the first use of one.
template <int kCount, int kRun>
__device__ inline void stored_turns(const Angles& angles, std::int32_t position,
                                    std::uint32_t first, std::uint32_t second, Turn* turns) {
  float c[kCount / kRun][kRun], s[kCount / kRun][kRun];
  const std::size_t row = std::size_t(position - angles.first) * 2 * angles.pairs;
  const auto read = [&](const auto* table) {
#pragma unroll
    for (int run = 0; run < kCount / kRun; ++run) {
      const auto* at = table + row + (run == 0 ? first : second);
      load<kRun>(at, c[run]);
      load<kRun>(at + angles.pairs, s[run]);
    }
  };
  switch (angles.element) {
    case Element::f32:
      read(static_cast<const float*>(angles.table));
      break;
    case Element::f16:
      read(static_cast<const __half*>(angles.table));
      break;
    case Element::bf16:
      read(static_cast<const __nv_bfloat16*>(angles.table));
      break;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    turns[i] = {c[i / kRun][i % kRun] * angles.cos_gain, s[i / kRun][i % kRun] * angles.sin_gain};
  }
}

template <int kCount, int kRun>
__device__ inline void computed_turns(const Angles& angles, std::int32_t position,
                                      std::uint32_t first, std::uint32_t second, Turn* turns) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const std::uint32_t pair = (i < kRun ? first : second) + i % kRun;
    const Turn turn =
        turn_of(angles.turns[pair], position, angles.phases ? angles.phases[pair] : 0);
    turns[i] = {turn.cos * angles.cos_gain, turn.sin * angles.sin_gain};
  }
}

// How a launch falls into threads.
template <int heads, int bytes, int threads, int blocks>
struct Shape {
  static constexpr int kHeads = heads;      // of one token, one after the other in a thread
  static constexpr int kBytes = bytes;      // of a vector; a thread holds two of every head
  static constexpr int kThreads = threads;  // of a block, at most
  static constexpr int kBlocks = blocks;    // at once on a multiprocessor: bounds the registers
};

// Division by a number that the host knows: n / divisor for n below 2^31, in three instructions.
struct Divisor {
  std::uint32_t factor;
  std::uint32_t shift;
};
__device__ inline std::uint32_t over(std::uint32_t n, const Divisor& by) {
  return (__umulhi(n, by.factor) + n) >> by.shift;
}

// Strides in vectors.
struct VectorStrides {
  std::int32_t sequence;
  std::int32_t token;
  std::int32_t head;
};

// A launch of rotate_vectors, by value; what every thread needs first comes first.
struct VectorWork {
  Places places;
  std::uint32_t rows;   // sequences * tokens * slots
  std::uint32_t slots;  // rows of one token: its heads over kHeads, rounded up
  Divisor by_slots;
  const void* from[2];  // queries, keys
  VectorStrides from_strides[2];
  std::uint32_t queries;
  std::uint32_t heads;  // queries and keys
  Angles angles;
  void* to[2];
  VectorStrides to_strides[2];
  std::uint32_t tail;  // vectors past rotary_dim, only copied
};

__device__ inline std::int64_t offset(const VectorStrides& strides, const Place& place,
                                      std::uint32_t head) {
  return std::int64_t(place.sequence) * strides.sequence +
         std::int64_t(place.token) * strides.token + std::int64_t(head) * strides.head;
}

// A row of threads turns kHeads heads of one token; each thread holds the same two vectors of every
// head, a row's width apart: with halves the two ends of its pairs, interleaved two runs of
// neighbours. So neighbouring threads always touch neighbouring memory, and a thread's cosines
// serve all its heads. A block is blockDim.x threads wide and blockDim.y rows high.
template <typename T, Pairing kPairing, bool kComputed, typename S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    rotate_vectors(const __grid_constant__ VectorWork work) {
  using V = Vector<S::kBytes>;
  constexpr int kCount = S::kBytes / sizeof(T);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  // A launch may begin while the kernel before it ends. Everything below reads what that one wrote.
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  const std::uint32_t row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= work.rows) return;
  const std::uint32_t lane = threadIdx.x;
  const std::uint32_t lanes = blockDim.x;
  const std::uint32_t token = over(row, work.by_slots);
  const std::uint32_t slot = row - token * work.slots;
  const Place place = place_of(work.places, token);

  const auto source = [&](std::uint32_t head) {
    const bool query = head < work.queries;
    return static_cast<const V*>(query ? work.from[0] : work.from[1]) +
           offset(query ? work.from_strides[0] : work.from_strides[1], place,
                  query ? head : head - work.queries);
  };
  V first[S::kHeads], second[S::kHeads];
#pragma unroll
  for (int u = 0; u < S::kHeads; ++u) {
    const std::uint32_t head = slot + u * work.slots;
    if (u == 0 || head < work.heads) {
      const V* from = source(head);
      first[u] = from[lane];
      second[u] = from[lane + lanes];
    }
  }
  // Without a row the first one is used until the end: an exit here would keep the loads above
  // waiting for the position.
  const bool known = kComputed || has_row(work.angles, place.position);
  const std::int32_t position = known ? place.position : work.angles.first;
  constexpr int kRun = kPairing == Pairing::halves ? kCount : kCount / 2;
  Turn turns[kCount];
  if constexpr (kComputed) {
    computed_turns<kCount, kRun>(work.angles, position, lane * kRun, (lane + lanes) * kRun, turns);
  } else {
    stored_turns<kCount, kRun>(work.angles, position, lane * kRun, (lane + lanes) * kRun, turns);
  }
  if (!known) {
    *work.angles.bad = 1;
    return;
  }

#pragma unroll
  for (int u = 0; u < S::kHeads; ++u) {
    const std::uint32_t head = slot + u * work.slots;
    if (u > 0 && head >= work.heads) continue;
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
    const bool query = head < work.queries;
    V* to = static_cast<V*>(query ? work.to[0] : work.to[1]) +
            offset(query ? work.to_strides[0] : work.to_strides[1], place,
                   query ? head : head - work.queries);
    to[lane] = pack<T, S::kBytes>(a);
    to[lane + lanes] = pack<T, S::kBytes>(b);
    for (std::uint32_t i = lane; i < work.tail; i += lanes) {
      to[2 * lanes + i] = source(head)[2 * lanes + i];
    }
  }
}

// A launch of rotate_pairs, by value.
struct PairWork {
  Heads queries;
  Heads keys;
  Places places;
  Angles angles;
  std::uint32_t tokens;  // of all sequences
  std::uint32_t tail;    // elements past rotary_dim, only copied
  bool interleaved;
};

constexpr int kPairThreads = 128;

// For what does not fall into vectors: one thread per pair, any alignment, any stride.
template <typename T>
__global__ void __launch_bounds__(kPairThreads)
    rotate_pairs(const __grid_constant__ PairWork work) {
  const std::uint32_t heads = work.queries.count + work.keys.count;
  const std::uint32_t pairs = work.angles.pairs;
  const std::uint64_t per_head = pairs + work.tail;
  const std::uint64_t count = std::uint64_t(work.tokens) * heads * per_head;
  for (std::uint64_t i = std::uint64_t(blockIdx.x) * kPairThreads + threadIdx.x; i < count;
       i += std::uint64_t(gridDim.x) * kPairThreads) {
    const std::uint64_t token_head = i / per_head;
    const auto pair = std::uint32_t(i - token_head * per_head);
    const auto token = std::uint32_t(token_head / heads);
    const auto head = std::uint32_t(token_head - std::uint64_t(token) * heads);
    const Place place = place_of(work.places, token);
    if (work.angles.table && !has_row(work.angles, place.position)) {
      *work.angles.bad = 1;
      continue;
    }
    const bool query = head < std::uint32_t(work.queries.count);
    const Heads& side = query ? work.queries : work.keys;
    const std::uint32_t h = query ? head : head - work.queries.count;
    const auto offset = [&](const Strides& strides) {
      return place.sequence * strides.sequence + place.token * strides.token + h * strides.head;
    };
    const T* from = static_cast<const T*>(side.from) + offset(side.from_strides);
    T* to = static_cast<T*>(side.to) + offset(side.to_strides);
    if (pair >= pairs) {
      to[pairs + pair] = from[pairs + pair];
      continue;
    }
    Turn turn;
    if (work.angles.table) {
      stored_turns<1, 1>(work.angles, place.position, pair, pair, &turn);
    } else {
      computed_turns<1, 1>(work.angles, place.position, pair, pair, &turn);
    }
    const std::uint32_t first = work.interleaved ? 2 * pair : pair;
    const std::uint32_t second = work.interleaved ? first + 1 : pair + pairs;
    float a = to_float(from[first]);
    float b = to_float(from[second]);
    rotate_pair(a, b, turn);
    from_float(a, to[first]);
    from_float(b, to[second]);
  }
}

}  // namespace mrrope::cuda
