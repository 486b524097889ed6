// SPDX-License-Identifier: Apache-2.0
// Tier 1, device maths: what happens to one pair and to one vector of memory.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

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
  const auto turns = static_cast<std::uint32_t>(
      (turns_per_position * static_cast<std::uint64_t>(static_cast<std::int64_t>(position)) +
       phase) >>
      32);
  const std::uint32_t quarter = (turns + 0x20000000u) >> 30;
  const auto rest = static_cast<std::int32_t>(turns - (quarter << 30));
  const float x = static_cast<float>(rest) * 0x1p-31f;  // in half turns
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

}  // namespace mrrope::cuda
