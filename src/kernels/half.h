// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 as bits, one number at a time, rounded to nearest even: for tables and tests.
#pragma once

#include <bit>
#include <cstdint>

namespace mrrope {

inline std::uint16_t bf16_from(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return std::uint16_t((bits >> 16) | 0x40);  // not a number
  return std::uint16_t((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

inline float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t(bits) << 16);
}

inline std::uint16_t f16_from(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = std::uint16_t((bits >> 16) & 0x8000u);
  const std::uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return std::uint16_t(sign | 0x7e00u | ((size >> 13) & 0x3ffu));
  if (size >= 0x477ff000u) return std::uint16_t(sign | 0x7c00u);  // rounds to infinity
  if (size < 0x38800000u) {
    // Below 2^-14: adding 0.5 leaves the subnormal's bits, rounded, at the low end.
    const float shifted = std::bit_cast<float>(size) + 0.5f;
    return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  return std::uint16_t(sign | ((size - 0x38000000u + 0xfffu + ((size >> 13) & 1)) >> 13));
}

inline float float_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t(bits & 0x8000u) << 16;
  const std::uint32_t size = bits & 0x7fffu;
  if (size >= 0x7c00u) return std::bit_cast<float>(sign | (size << 13) | 0x7f800000u);
  // As if the exponent had f32's bias, then brought back; right for subnormals too.
  const float magnitude = std::bit_cast<float>(size << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

}  // namespace mrrope
