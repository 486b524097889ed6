// SPDX-License-Identifier: Apache-2.0
// The types of elements for one instruction set; rotary_simd.cpp includes this once per target.
#if defined(MRROPE_ROTARY_ELEMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MRROPE_ROTARY_ELEMENTS_INL_H
#undef MRROPE_ROTARY_ELEMENTS_INL_H
#else
#define MRROPE_ROTARY_ELEMENTS_INL_H
#endif

#include <hwy/highway.h>

#include "kernels/half.h"

HWY_BEFORE_NAMESPACE();
namespace mrrope {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#undef MRROPE_VECTORS
#undef MRROPE_NEON
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
#define MRROPE_VECTORS 0
#else
#define MRROPE_VECTORS 1
#endif
// Arm's vectors of 16 bytes: one instruction each splits two of them into even and odd elements.
#if HWY_ARCH_ARM_A64 && MRROPE_VECTORS && HWY_TARGET != HWY_SVE && HWY_TARGET != HWY_SVE_256
#define MRROPE_NEON 1
#else
#define MRROPE_NEON 0
#endif
// Whether the target converts f16 itself, with correct rounding.
#if HWY_ARCH_X86
constexpr bool kVectorsF16 = MRROPE_VECTORS && HWY_TARGET <= HWY_AVX2;
#else
constexpr bool kVectorsF16 = MRROPE_VECTORS && HWY_ARCH_ARM_A64;
#endif

// Elements in memory: one at a time, or two vectors of floats x, y at a time. Each type decides
// which element goes to which lane: kSplit says that x takes the even ones and y the odd ones. With
// kApart, load_apart() reads neighbours as the two ends of their pairs.
struct F32 {
  using Type = float;
  static constexpr bool kWide = MRROPE_VECTORS;
  static constexpr bool kSplit = false;
  static constexpr bool kApart = MRROPE_NEON;
  static float get(const float* p) { return *p; }
  static void put(float x, float* p) { *p = x; }
#if MRROPE_VECTORS
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void load(D d, const float* p, V& x, V& y) {
    x = hn::LoadU(d, p);
    y = hn::LoadU(d, p + hn::Lanes(d));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void store(V x, V y, D d, float* p) {
    hn::StoreU(x, d, p);
    hn::StoreU(y, d, p + hn::Lanes(d));
  }
#endif
#if MRROPE_NEON
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void load_apart(D d, const float* p, V& a0, V& a1, V& b0, V& b1) {
    V x, y;
    load(d, p, x, y);
    a0 = hn::ConcatEven(d, y, x);
    b0 = hn::ConcatOdd(d, y, x);
    load(d, p + 8, x, y);
    a1 = hn::ConcatEven(d, y, x);
    b1 = hn::ConcatOdd(d, y, x);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void store_apart(V a0, V a1, V b0, V b1, D d, float* p) {
    store(hn::InterleaveLower(d, a0, b0), hn::InterleaveUpper(d, a0, b0), d, p);
    store(hn::InterleaveLower(d, a1, b1), hn::InterleaveUpper(d, a1, b1), d, p + 8);
  }
#endif
};

struct F16 {
  using Type = std::uint16_t;
  static constexpr bool kWide = kVectorsF16;
  static constexpr bool kSplit = false;
  static constexpr bool kApart = MRROPE_NEON;
  static float get(const Type* p) { return float_from_f16(*p); }
  static void put(float x, Type* p) { *p = f16_from(x); }
#if MRROPE_NEON
  // Eight at a time: half the loads and stores of four.
  template <class V>
  static HWY_INLINE void widen(uint16x8_t eight, V& x, V& y) {
    const float16x8_t half = vreinterpretq_f16_u16(eight);
    x = V(vcvt_f32_f16(vget_low_f16(half)));
    y = V(vcvt_high_f32_f16(half));
  }
  template <class V>
  static HWY_INLINE uint16x8_t narrow(V x, V y) {
    return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x.raw), y.raw));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void load(D, const Type* p, V& x, V& y) {
    widen(vld1q_u16(p), x, y);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void store(V x, V y, D, Type* p) {
    vst1q_u16(p, narrow(x, y));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void load_apart(D, const Type* p, V& a0, V& a1, V& b0, V& b1) {
    const uint16x8_t x = vld1q_u16(p), y = vld1q_u16(p + 8);
    widen(vuzp1q_u16(x, y), a0, a1);
    widen(vuzp2q_u16(x, y), b0, b1);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void store_apart(V a0, V a1, V b0, V b1, D, Type* p) {
    const uint16x8_t x = narrow(a0, a1), y = narrow(b0, b1);
    vst1q_u16(p, vzip1q_u16(x, y));
    vst1q_u16(p + 8, vzip2q_u16(x, y));
  }
#elif MRROPE_VECTORS
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void load(D d, const Type* p, V& x, V& y) {
    const hn::Rebind<hwy::float16_t, D> dh;
    const auto* half = reinterpret_cast<const hwy::float16_t*>(p);
    x = hn::PromoteTo(d, hn::LoadU(dh, half));
    y = hn::PromoteTo(d, hn::LoadU(dh, half + hn::Lanes(d)));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void store(V x, V y, D d, Type* p) {
    const hn::Rebind<hwy::float16_t, D> dh;
    auto* half = reinterpret_cast<hwy::float16_t*>(p);
    hn::StoreU(hn::DemoteTo(dh, x), dh, half);
    hn::StoreU(hn::DemoteTo(dh, y), dh, half + hn::Lanes(d));
  }
#endif
};

// Two bf16 in a word are two floats after one operation each, if even and odd are separated.
struct BF16 {
  using Type = std::uint16_t;
  static constexpr bool kWide = MRROPE_VECTORS;
  static constexpr bool kApart = true;
  static float get(const Type* p) { return float_from_bf16(*p); }
  static void put(float x, Type* p) { *p = bf16_from(x); }
#if MRROPE_VECTORS
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void load_split(D d, const Type* p, V& x, V& y) {
    const hn::RebindToUnsigned<D> dw;
    const hn::Repartition<std::uint16_t, D> dh;
    const auto words = hn::BitCast(dw, hn::LoadU(dh, p));
    x = hn::BitCast(d, hn::ShiftLeft<16>(words));
    y = hn::BitCast(d, hn::And(words, hn::Set(dw, 0xffff0000u)));
  }
#endif
#if MRROPE_ROUNDS_BF16
  // The processor rounds, four in a row to four in a row.
  static constexpr bool kSplit = false;
  template <class V>
  static HWY_INLINE uint16x8_t narrow(V x, V y) {
    return vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(x.raw), y.raw));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void load(D, const Type* p, V& x, V& y) {
    const uint16x8_t eight = vld1q_u16(p);
    x = V(vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(eight), 16)));
    y = V(vreinterpretq_f32_u32(vshll_high_n_u16(eight, 16)));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void store(V x, V y, D, Type* p) {
    vst1q_u16(p, narrow(x, y));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void load_apart(D d, const Type* p, V& a0, V& a1, V& b0, V& b1) {
    load_split(d, p, a0, b0);
    load_split(d, p + 8, a1, b1);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void store_apart(V a0, V a1, V b0, V b1, D, Type* p) {
    const uint16x8_t x = narrow(a0, a1), y = narrow(b0, b1);
    vst1q_u16(p, vzip1q_u16(x, y));
    vst1q_u16(p + 8, vzip2q_u16(x, y));
  }
#else
  static constexpr bool kSplit = true;
#if MRROPE_VECTORS
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void load(D d, const Type* p, V& x, V& y) {
    load_split(d, p, x, y);
  }
  // To nearest, ties to even, as bf16_from(). No number of ours is a NaN whose low half would carry
  // into the sign: NaNs come from the input, and there that half is 0.
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void store(V x, V y, D, Type* p) {
    const hn::RebindToUnsigned<D> dw;
    const hn::Repartition<std::uint16_t, D> dh;
    const auto low = hn::ShiftRight<16>(rounded(dw, hn::BitCast(dw, x)));
    const auto high = rounded(dw, hn::BitCast(dw, y));
    hn::StoreU(hn::OddEven(hn::BitCast(dh, high), hn::BitCast(dh, low)), dh, p);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V rounded(D d, V bits) {
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
    return hn::Add(hn::Add(bits, hn::Set(d, 0x7fff)), odd);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void load_apart(D d, const Type* p, V& a0, V& a1, V& b0, V& b1) {
    load_split(d, p, a0, b0);
    load_split(d, p + 2 * hn::Lanes(d), a1, b1);
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void store_apart(V a0, V a1, V b0, V b1, D d, Type* p) {
    store(a0, b0, d, p);
    store(a1, b1, d, p + 2 * hn::Lanes(d));
  }
#endif
#endif
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mrrope
HWY_AFTER_NAMESPACE();

#endif
