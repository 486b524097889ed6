// SPDX-License-Identifier: Apache-2.0
#include "kernels/rotary_simd.h"

#include <algorithm>
#include <cstring>

#include "kernels/half.h"

// Machines before AVX2 take the scalar code: they cannot convert f16 either. SVE2 adds nothing
// here.
#if defined(__SANITIZE_ADDRESS__)  // g++ 12 fails on vectors of unknown size under its sanitizer
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE2 | HWY_SVE2_128 | HWY_SVE | HWY_SVE_256)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE2 | HWY_SVE2_128)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rotary_simd.cpp"
#include <hwy/foreach_target.h>  // compiles what follows once per target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mrrope {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
#define MRROPE_VECTORS 0
#else
#define MRROPE_VECTORS 1
#endif
// Whether the target converts f16 itself, with correct rounding.
#if HWY_ARCH_X86
constexpr bool kVectorsF16 = MRROPE_VECTORS && HWY_TARGET <= HWY_AVX2;
#else
constexpr bool kVectorsF16 = MRROPE_VECTORS && HWY_ARCH_ARM_A64;
#endif

// Elements in memory: one at a time, or two vectors of floats x, y at a time. Which element comes
// to which lane is the type's own matter: kSplit says that x takes the even ones and y the odd
// ones.
struct F32 {
  using Type = float;
  static constexpr bool kWide = MRROPE_VECTORS;
  static constexpr bool kSplit = false;
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
};

struct F16 {
  using Type = std::uint16_t;
  static constexpr bool kWide = kVectorsF16;
  static constexpr bool kSplit = false;
  static float get(const Type* p) { return float_from_f16(*p); }
  static void put(float x, Type* p) { *p = f16_from(x); }
#if MRROPE_VECTORS
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

// Two bf16 in a word are two floats after one operation each, if even and odd go apart.
struct BF16 {
  using Type = std::uint16_t;
  static constexpr bool kWide = MRROPE_VECTORS;
  static constexpr bool kSplit = true;
  static float get(const Type* p) { return float_from_bf16(*p); }
  static void put(float x, Type* p) { *p = bf16_from(x); }
#if MRROPE_VECTORS
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE void load(D d, const Type* p, V& x, V& y) {
    const hn::RebindToUnsigned<D> dw;
    const hn::Repartition<std::uint16_t, D> dh;
    const auto words = hn::BitCast(dw, hn::LoadU(dh, p));
    x = hn::BitCast(d, hn::ShiftLeft<16>(words));
    y = hn::BitCast(d, hn::And(words, hn::Set(dw, 0xffff0000u)));
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
#endif
};

// Heads of one side of some tokens of one sequence.
template <class T>
struct Span {
  const T* from;
  T* to;
  std::int64_t from_head, from_token, to_head, to_token;  // strides
  int heads;
  int tokens;
};

// Cosines of every token of a span; its sines lie `sines` floats further.
struct Rows {
  const float* const* cosines;
  std::int64_t sines;
};

// How many of `count` elements fall into two full vectors at a time.
template <class E, class D>
HWY_INLINE int in_vectors(D d, int count) {
  const int n = 2 * int(hn::Lanes(d));
  return E::kWide ? count / n * n : 0;
}

#if MRROPE_VECTORS
// The loops below hold nothing but tokens, heads and vectors: a spill to the stack between two
// heads already keeps the processor from writing whole cache lines without reading them first.

// Pairs [begin, end), the other half lies `pairs` further; cosines and sines as the type splits.
template <class E, int kEnd, class D, class T = typename E::Type>
HWY_NOINLINE void turn_halves(D d, const Span<T>& x, int pairs, const Rows& rows, int begin,
                              int end) {
  if (kEnd) pairs = end = kEnd, begin = 0;  // known to the compiler
  const int n = int(hn::Lanes(d));
  for (int t = 0; t < x.tokens; ++t) {
    const float* HWY_RESTRICT c = rows.cosines[t];
    const float* HWY_RESTRICT s = c + rows.sines;
    const T* from = x.from + t * x.from_token;
    T* to = x.to + t * x.to_token;
    for (int h = 0; h < x.heads; ++h, from += x.from_head, to += x.to_head) {
      for (int i = begin; i < end; i += 2 * n) {
        const auto c0 = hn::LoadU(d, c + i), c1 = hn::LoadU(d, c + i + n);
        const auto s0 = hn::LoadU(d, s + i), s1 = hn::LoadU(d, s + i + n);
        hn::Vec<D> a0, a1, b0, b1;
        E::load(d, from + i, a0, a1);
        E::load(d, from + i + pairs, b0, b1);
        E::store(hn::NegMulAdd(b0, s0, hn::Mul(a0, c0)), hn::NegMulAdd(b1, s1, hn::Mul(a1, c1)), d,
                 to + i);
        E::store(hn::MulAdd(a0, s0, hn::Mul(b0, c0)), hn::MulAdd(a1, s1, hn::Mul(b1, c1)), d,
                 to + i + pairs);
      }
    }
  }
}

// Elements [begin, end) of neighbours. A type that does not split reads every cosine twice, and
// every sine as -s, s; with one that splits, a and b come apart by themselves, and the rows are as
// in the table.
template <class E, int kEnd, class D, class T = typename E::Type>
HWY_NOINLINE void turn_neighbours(D d, const Span<T>& x, const Rows& rows, int begin, int end) {
  if (kEnd) end = kEnd, begin = 0;
  const int n = int(hn::Lanes(d));
  for (int t = 0; t < x.tokens; ++t) {
    const float* HWY_RESTRICT c = rows.cosines[t];
    const float* HWY_RESTRICT s = c + rows.sines;
    const T* from = x.from + t * x.from_token;
    T* to = x.to + t * x.to_token;
    for (int h = 0; h < x.heads; ++h, from += x.from_head, to += x.to_head) {
      for (int i = begin; i < end; i += 2 * n) {
        hn::Vec<D> a, b;
        E::load(d, from + i, a, b);
        if constexpr (E::kSplit) {
          const auto c0 = hn::LoadU(d, c + i / 2), s0 = hn::LoadU(d, s + i / 2);
          E::store(hn::NegMulAdd(b, s0, hn::Mul(a, c0)), hn::MulAdd(a, s0, hn::Mul(b, c0)), d,
                   to + i);
        } else {
          const auto c0 = hn::LoadU(d, c + i), c1 = hn::LoadU(d, c + i + n);
          const auto s0 = hn::LoadU(d, s + i), s1 = hn::LoadU(d, s + i + n);
          E::store(hn::MulAdd(hn::Reverse2(d, a), s0, hn::Mul(a, c0)),
                   hn::MulAdd(hn::Reverse2(d, b), s1, hn::Mul(b, c1)), d, to + i);
        }
      }
    }
  }
}
#endif

// One pair after the other, for what is left: pairs [begin, end).
template <class E, class T = typename E::Type>
HWY_NOINLINE void turn_rest(const Span<T>& x, bool halves, int pairs, const Rows& rows, int begin,
                            int end) {
  for (int t = 0; t < x.tokens; ++t) {
    const float* c = rows.cosines[t];
    const float* s = c + rows.sines;
    for (int h = 0; h < x.heads; ++h) {
      const T* from = x.from + t * x.from_token + h * x.from_head;
      T* to = x.to + t * x.to_token + h * x.to_head;
      for (int i = begin; i < end; ++i) {
        const bool twice = !halves && !E::kSplit;
        const float ci = c[twice ? 2 * i : i];
        const float si = s[twice ? 2 * i + 1 : i];
        const int first = halves ? i : 2 * i;
        const int second = halves ? i + pairs : 2 * i + 1;
        const float a = E::get(from + first);
        const float b = E::get(from + second);
        E::put(a * ci - b * si, to + first);
        E::put(a * si + b * ci, to + second);
      }
    }
  }
}

// Pairs [0, count) of heads whose halves are `pairs` apart.
template <class E, class T = typename E::Type>
void turn(const Span<T>& x, bool halves, int pairs, const Rows& rows, int count) {
  int done = 0;  // pairs
#if MRROPE_VECTORS
  if constexpr (E::kWide) {
    // Full vectors, then vectors of four floats.
    const auto some = [&](auto d) HWY_ATTR {
      if (halves) {
        const int end = done + in_vectors<E>(d, count - done);
        if (end == 64 && pairs == 64 && done == 0) {
          turn_halves<E, 64>(d, x, pairs, rows, done, end);
        } else if (end == 32 && pairs == 32 && done == 0) {
          turn_halves<E, 32>(d, x, pairs, rows, done, end);
        } else if (end > done) {
          turn_halves<E, 0>(d, x, pairs, rows, done, end);
        }
        done = end;
      } else {
        const int end = 2 * done + in_vectors<E>(d, 2 * (count - done));
        if (end == 128 && done == 0) {
          turn_neighbours<E, 128>(d, x, rows, done, end);
        } else if (end == 64 && done == 0) {
          turn_neighbours<E, 64>(d, x, rows, done, end);
        } else if (end > 2 * done) {
          turn_neighbours<E, 0>(d, x, rows, 2 * done, end);
        }
        done = end / 2;
      }
    };
    some(hn::ScalableTag<float>());
    some(hn::CappedTag<float, 4>());
  }
#endif
  if (done < count) turn_rest<E>(x, halves, pairs, rows, done, count);
}

// What a step of the work holds: some pairs of some tokens, their cosines and sines in the form
// that the loops above read, either as they lie in the table or in `floats`.
constexpr int kPairs = 512;
constexpr int kTokens = 16;
constexpr int kFloats = 8192;  // in the first-level cache
struct Tile {
  const float* cosines[kTokens];
  alignas(64) float floats[kFloats];
};

// Out of the table into floats, as they lie.
template <class E, class T = typename E::Type>
void fill(const void* row, int first, int pairs, const RotaryWork& work, int count, float* c,
          float* s) {
  const T* from = static_cast<const T*>(row) + first;
  for (int i = 0; i < count; ++i) c[i] = E::get(from + i) * work.cos_gain;
  for (int i = 0; i < count; ++i) s[i] = E::get(from + i + pairs) * work.sin_gain;
}

// For turn_halves of a type that splits: even and odd ones of every two vectors apart.
template <class E>
void split(const float* from, float* to, int count) {
  int i = 0;
#if MRROPE_VECTORS
  const auto some = [&](auto d) HWY_ATTR {
    const int n = int(hn::Lanes(d));
    for (const int end = i + in_vectors<E>(d, count - i); i < end; i += 2 * n) {
      for (int k = 0; k < n; ++k) {
        to[i + k] = from[i + 2 * k];
        to[i + n + k] = from[i + 2 * k + 1];
      }
    }
  };
  some(hn::ScalableTag<float>());
  some(hn::CappedTag<float, 4>());
#endif
  for (; i < count; ++i) to[i] = from[i];
}

// Pairs [first, first + count) of the positions of `tokens` tokens from `token` on, for elements of
// type E.
template <class E>
Rows prepare(const RotaryWork& work, std::int64_t sequence, std::int64_t token, int tokens,
             int first, int count, Tile& tile) {
  const RotaryTable& table = *work.table;
  const Batch& batch = *work.batch;
  const int pairs = table.pairs();
  const bool halves = table.pairing() == Pairing::halves;
  const bool as_is = halves ? !E::kSplit || !E::kWide : E::kSplit;
  const bool copy = table.element() != Element::f32 || batch.inverse;
  float lying[2 * kPairs];
  for (int t = 0; t < tokens; ++t) {
    const std::int64_t position = batch.positions
                                      ? batch.positions[sequence * batch.tokens + token + t]
                                      : batch.first_position + token + t;
    const void* row = table.row(position);
    if (as_is && !copy) {
      tile.cosines[t] = static_cast<const float*>(row) + first;
      continue;
    }
    float* to = tile.floats + t * 4 * count;  // cosines, then sines, each perhaps twice
    tile.cosines[t] = to;
    const float* c = static_cast<const float*>(row) + first;
    const float* s = c + pairs;
    if (copy) {
      float* filled = as_is ? to : lying;
      float* sines = filled + (as_is ? 2 * count : kPairs);
      switch (table.element()) {
        case Element::f32:
          fill<F32>(row, first, pairs, work, count, filled, sines);
          break;
        case Element::f16:
          fill<F16>(row, first, pairs, work, count, filled, sines);
          break;
        case Element::bf16:
          fill<BF16>(row, first, pairs, work, count, filled, sines);
          break;
      }
      c = filled;
      s = sines;
    }
    if (as_is) continue;
    if (halves) {
      split<E>(c, to, count);
      split<E>(s, to + 2 * count, count);
    } else {
      for (int i = 0; i < count; ++i) to[2 * i] = to[2 * i + 1] = c[i];
      for (int i = 0; i < count; ++i) {
        to[2 * (count + i)] = -s[i];
        to[2 * (count + i) + 1] = s[i];
      }
    }
  }
  return {tile.cosines, as_is && !copy ? pairs : 2 * count};
}

// Heads [begin, end) of one side, of tokens whose rows are prepared.
template <class E>
void turn_heads(const RotaryWork& work, const Heads& heads, std::int64_t sequence,
                std::int64_t token, int tokens, int begin, int end, int first, int count,
                const Rows& rows) {
  using T = typename E::Type;
  if (begin >= end) return;
  const int pairs = work.table->pairs();
  const bool halves = work.table->pairing() == Pairing::halves;
  const Strides& in = heads.from_strides;
  const Strides& out = heads.to_strides;
  Span<T> x{
      static_cast<const T*>(heads.from) + sequence * in.sequence + token * in.token +
          begin * in.head,
      static_cast<T*>(heads.to) + sequence * out.sequence + token * out.token + begin * out.head,
      in.head,
      in.token,
      out.head,
      out.token,
      end - begin,
      tokens};
  const int rest = work.batch->head_dim - 2 * pairs;
  if (rest > 0 && first == 0 && x.from != x.to) {
    for (int t = 0; t < tokens; ++t) {
      for (int h = 0; h < x.heads; ++h) {
        std::memcpy(x.to + t * x.to_token + h * x.to_head + 2 * pairs,
                    x.from + t * x.from_token + h * x.from_head + 2 * pairs,
                    std::size_t(rest) * sizeof(T));
      }
    }
  }
  x.from += halves ? first : 2 * first;
  x.to += halves ? first : 2 * first;
  turn<E>(x, halves, pairs, rows, count);
}

template <class E>
void rotate_heads_as(const RotaryWork& work, std::int64_t begin, std::int64_t end) {
  const Batch& batch = *work.batch;
  const int pairs = work.table->pairs();
  const int queries = batch.queries.count;
  const std::int64_t heads = queries + batch.keys.count;
  Tile tile;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t index = at / heads;  // of the token among all sequences
    const std::int64_t sequence = index / batch.tokens;
    const std::int64_t token = index - sequence * batch.tokens;
    const int first_head = int(at - index * heads);
    // Whole tokens of one sequence together; those that begin or end in the middle alone.
    std::int64_t tokens = 1;
    int last_head = int(std::min(heads, first_head + end - at));
    if (first_head == 0 && last_head == heads) {
      const std::int64_t room = kFloats / (4 * std::min(pairs, kPairs));
      tokens = std::min({(end - at) / heads, batch.tokens - token, room, std::int64_t(kTokens)});
    }
    for (int first = 0; first < pairs; first += kPairs) {
      const int count = std::min(kPairs, pairs - first);
      const Rows rows = prepare<E>(work, sequence, token, int(tokens), first, count, tile);
      turn_heads<E>(work, batch.queries, sequence, token, int(tokens), first_head,
                    std::min(queries, last_head), first, count, rows);
      turn_heads<E>(work, batch.keys, sequence, token, int(tokens),
                    std::max(0, first_head - queries), last_head - queries, first, count, rows);
    }
    at += tokens * (last_head - first_head);
  }
}

void rotate_heads_here(const RotaryWork& work, std::int64_t begin, std::int64_t end) {
  switch (work.batch->element) {
    case Element::f32:
      return rotate_heads_as<F32>(work, begin, end);
    case Element::f16:
      return rotate_heads_as<F16>(work, begin, end);
    case Element::bf16:
      return rotate_heads_as<BF16>(work, begin, end);
  }
}

// With a multiplication by 1, which the compiler does not know: it would leave the conversions out.
template <class E>
void convert_as(const void* from, void* to, std::int64_t count, float one) {
  const auto* x = static_cast<const typename E::Type*>(from);
  auto* y = static_cast<typename E::Type*>(to);
  std::int64_t i = 0;
#if MRROPE_VECTORS
  if constexpr (E::kWide) {
    const hn::ScalableTag<float> d;
    const auto n = 2 * std::int64_t(hn::Lanes(d));
    const auto factor = hn::Set(d, one);
    for (; i + n <= count; i += n) {
      hn::Vec<decltype(d)> a, b;
      E::load(d, x + i, a, b);
      E::store(hn::Mul(a, factor), hn::Mul(b, factor), d, y + i);
    }
  }
#endif
  for (; i < count; ++i) E::put(E::get(x + i) * one, y + i);
}

void convert_here(Element element, const void* from, void* to, std::int64_t count) {
  volatile float one = 1;
  switch (element) {
    case Element::f32:
      return convert_as<F32>(from, to, count, one);
    case Element::f16:
      return convert_as<F16>(from, to, count, one);
    case Element::bf16:
      return convert_as<BF16>(from, to, count, one);
  }
}

#undef MRROPE_VECTORS

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mrrope
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mrrope {

HWY_EXPORT(rotate_heads_here);
HWY_EXPORT(convert_here);

void rotate_heads(const RotaryWork& work, std::int64_t begin, std::int64_t end) noexcept {
  HWY_DYNAMIC_DISPATCH(rotate_heads_here)(work, begin, end);
}

void convert_elements(Element element, const void* from, void* to, std::int64_t count) noexcept {
  HWY_DYNAMIC_DISPATCH(convert_here)(element, from, to, count);
}

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

void use_simd_target(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name == hwy::TargetName(target)) hwy::SetSupportedTargetsForTest(target);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace mrrope
#endif  // HWY_ONCE
