// SPDX-License-Identifier: Apache-2.0
// Tier 1, device maths: what happens to one pair and to one vector of 16 bytes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace mrrope::cuda {

struct Turn {
  float cos;
  float sin;
};

// Of a position times radians per position, both as fractions of a full turn in 64-bit fixed point:
// the product wraps around at a full turn, so the reduction is exact at any position.
__device__ inline Turn turn_of(std::uint64_t turns_per_position, std::int32_t position) {
  const auto turns = static_cast<std::uint32_t>(
      (turns_per_position * static_cast<std::uint64_t>(static_cast<std::int64_t>(position))) >> 32);
  const std::uint32_t quarter = (turns + 0x20000000u) >> 30;
  const auto rest = static_cast<std::int32_t>(turns - (quarter << 30));  // within an eighth
  float s, c;
  sincospif(static_cast<float>(rest) * 0x1p-31f, &s, &c);
  const bool odd = quarter & 1;
  const float x = odd ? -s : c;
  const float y = odd ? c : s;
  return quarter & 2 ? Turn{-x, -y} : Turn{x, y};
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

// Elements in 16 bytes.
template <typename T>
constexpr int kLanes = 16 / sizeof(T);

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

template <typename T>
__device__ inline void unpack(const uint4& packed, float (&x)[kLanes<T>]) {
  const std::uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      x[i] = __uint_as_float(words[i]);
    } else {
      const float2 two = unpack_two(words[i], T());
      x[2 * i] = two.x;
      x[2 * i + 1] = two.y;
    }
  }
}

template <typename T>
__device__ inline uint4 pack(const float (&x)[kLanes<T>]) {
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      words[i] = __float_as_uint(x[i]);
    } else {
      words[i] = pack_two({x[2 * i], x[2 * i + 1]}, T());
    }
  }
  return {words[0], words[1], words[2], words[3]};
}

}  // namespace mrrope::cuda
