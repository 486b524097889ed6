// SPDX-License-Identifier: Apache-2.0
#include "kernels/rotary_simd.h"

#include <algorithm>
#include <cstring>

#include "kernels/half.h"

// Machines before AVX2 take the scalar code: they cannot convert f16 either.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rotary_simd.cpp"
#include <hwy/foreach_target.h>  // compiles what follows once per target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mrrope {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
constexpr bool kVectors = false;
#else
constexpr bool kVectors = true;
#endif
// Whether the target converts f16 itself, with correct rounding.
#if HWY_ARCH_X86
constexpr bool kVectorsF16 = kVectors && HWY_TARGET <= HWY_AVX2;
#else
constexpr bool kVectorsF16 = kVectors && HWY_ARCH_ARM_A64;
#endif

// Elements in memory: one at a time, and one vector of floats at a time.
struct F32 {
  using Type = float;
  static constexpr bool kWide = kVectors;
  static float get(const float* p) { return *p; }
  static void put(float x, float* p) { *p = x; }
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  static HWY_INLINE hn::Vec<Floats> load(Floats d, const float* p) { return hn::LoadU(d, p); }
  static HWY_INLINE void store(hn::Vec<Floats> x, Floats d, float* p) { hn::StoreU(x, d, p); }
#endif
};

struct F16 {
  using Type = std::uint16_t;
  static constexpr bool kWide = kVectorsF16;
  static float get(const Type* p) { return float_from_f16(*p); }
  static void put(float x, Type* p) { *p = f16_from(x); }
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  using Halves = hn::Rebind<hwy::float16_t, Floats>;
  static HWY_INLINE hn::Vec<Floats> load(Floats d, const Type* p) {
    return hn::PromoteTo(d, hn::LoadU(Halves(), reinterpret_cast<const hwy::float16_t*>(p)));
  }
  static HWY_INLINE void store(hn::Vec<Floats> x, Floats, Type* p) {
    hn::StoreU(hn::DemoteTo(Halves(), x), Halves(), reinterpret_cast<hwy::float16_t*>(p));
  }
#endif
};

struct BF16 {
  using Type = std::uint16_t;
  static constexpr bool kWide = kVectors;
  static float get(const Type* p) { return float_from_bf16(*p); }
  static void put(float x, Type* p) { *p = bf16_from(x); }
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  using Shorts = hn::Rebind<std::uint16_t, Floats>;
  using Words = hn::RebindToUnsigned<Floats>;
  static HWY_INLINE hn::Vec<Floats> load(Floats d, const Type* p) {
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(Words(), hn::LoadU(Shorts(), p))));
  }
  // To nearest, ties to even, as bf16_from().
  static HWY_INLINE void store(hn::Vec<Floats> x, Floats, Type* p) {
    const Words d;
    const auto bits = hn::BitCast(d, x);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7fff)), odd);
    const auto quiet = hn::Or(bits, hn::Set(d, 0x400000));
    const auto nan = hn::RebindMask(d, hn::Ne(x, x));
    const auto high = hn::ShiftRight<16>(hn::IfThenElse(nan, quiet, rounded));
    hn::StoreU(hn::TruncateTo(Shorts(), high), Shorts(), p);
  }
#endif
};

// A head as halves, pairs [0, count): cosines c, sines s.
template <typename E>
HWY_INLINE void turn_halves(const typename E::Type* from, typename E::Type* to, int pairs,
                            const float* c, const float* s, int count) {
  int i = 0;
  if constexpr (E::kWide) {
    const Floats d;
    const int n = int(hn::Lanes(d));
    for (; i + n <= count; i += n) {
      const auto vc = hn::LoadU(d, c + i);
      const auto vs = hn::LoadU(d, s + i);
      const auto a = E::load(d, from + i);
      const auto b = E::load(d, from + i + pairs);
      E::store(hn::NegMulAdd(b, vs, hn::Mul(a, vc)), d, to + i);
      E::store(hn::MulAdd(a, vs, hn::Mul(b, vc)), d, to + i + pairs);
    }
  }
  for (; i < count; ++i) {
    const float a = E::get(from + i);
    const float b = E::get(from + i + pairs);
    E::put(a * c[i] - b * s[i], to + i);
    E::put(a * s[i] + b * c[i], to + i + pairs);
  }
}

// A head with neighbours paired, `count` pairs: c holds every cosine twice, s every sine as -s, s.
template <typename E>
HWY_INLINE void turn_neighbours(const typename E::Type* from, typename E::Type* to, const float* c,
                                const float* s, int count) {
  int i = 0;
  if constexpr (E::kWide) {
    const Floats d;
    const int n = int(hn::Lanes(d));
    for (; i + n <= 2 * count; i += n) {
      const auto x = E::load(d, from + i);
      const auto swapped = hn::Reverse2(d, x);
      E::store(hn::MulAdd(swapped, hn::LoadU(d, s + i), hn::Mul(x, hn::LoadU(d, c + i))), d,
               to + i);
    }
  }
  for (; i < 2 * count; i += 2) {
    const float a = E::get(from + i);
    const float b = E::get(from + i + 1);
    E::put(a * c[i] + b * s[i], to + i);
    E::put(b * c[i] + a * s[i + 1], to + i + 1);
  }
}

constexpr int kTile = 512;  // pairs whose cosines and sines are held at a time

// Cosines and sines of one position in the form that the loops above read.
struct Row {
  const float* c;
  const float* s;
  alignas(64) float memory[4 * kTile];
};

template <typename E>
void fill(const typename E::Type* cosines, const typename E::Type* sines, const RotaryWork& work,
          bool neighbours, int count, Row& row) {
  float* c = row.memory;
  float* s = row.memory + 2 * kTile;
  int i = 0;
  if constexpr (E::kWide) {
    const Floats d;
    const int n = int(hn::Lanes(d));
    const auto cos_gain = hn::Set(d, work.cos_gain);
    const auto sin_gain = hn::Set(d, work.sin_gain);
    for (; i + n <= count; i += n) {
      const auto vc = hn::Mul(E::load(d, cosines + i), cos_gain);
      const auto vs = hn::Mul(E::load(d, sines + i), sin_gain);
      if (neighbours) {
        hn::StoreInterleaved2(vc, vc, d, c + 2 * i);
        hn::StoreInterleaved2(hn::Neg(vs), vs, d, s + 2 * i);
      } else {
        hn::StoreU(vc, d, c + i);
        hn::StoreU(vs, d, s + i);
      }
    }
  }
  for (; i < count; ++i) {
    const float vc = E::get(cosines + i) * work.cos_gain;
    const float vs = E::get(sines + i) * work.sin_gain;
    if (neighbours) {
      c[2 * i] = c[2 * i + 1] = vc;
      s[2 * i] = -vs;
      s[2 * i + 1] = vs;
    } else {
      c[i] = vc;
      s[i] = vs;
    }
  }
  row.c = c;
  row.s = s;
}

// Pairs [first, first + count) of one position.
void prepare(const RotaryWork& work, std::int64_t position, int first, int count, Row& row) {
  const RotaryTable& table = *work.table;
  const bool neighbours = table.pairing() == Pairing::interleaved;
  const void* data = table.row(position);
  if (table.element() == Element::f32) {
    const auto* cosines = static_cast<const float*>(data) + first;
    const float* sines = cosines + table.pairs();
    if (!neighbours && !work.batch->inverse) {
      row.c = cosines;
      row.s = sines;
    } else {
      fill<F32>(cosines, sines, work, neighbours, count, row);
    }
    return;
  }
  const auto* cosines = static_cast<const std::uint16_t*>(data) + first;
  const std::uint16_t* sines = cosines + table.pairs();
  if (table.element() == Element::f16) {
    fill<F16>(cosines, sines, work, neighbours, count, row);
  } else {
    fill<BF16>(cosines, sines, work, neighbours, count, row);
  }
}

// Heads [begin, end) of one side of one token.
template <typename E>
void turn_heads(const RotaryWork& work, const Heads& heads, std::int64_t sequence,
                std::int64_t token, int begin, int end, int first, int count, const Row& row) {
  using T = typename E::Type;
  const RotaryTable& table = *work.table;
  const int pairs = table.pairs();
  const bool halves = table.pairing() == Pairing::halves;
  const auto place = [&](const Strides& strides, int head) {
    return sequence * strides.sequence + token * strides.token + head * strides.head;
  };
  for (int head = begin; head < end; ++head) {
    const T* from = static_cast<const T*>(heads.from) + place(heads.from_strides, head);
    T* to = static_cast<T*>(heads.to) + place(heads.to_strides, head);
    if (halves) {
      turn_halves<E>(from + first, to + first, pairs, row.c, row.s, count);
    } else {
      turn_neighbours<E>(from + 2 * first, to + 2 * first, row.c, row.s, count);
    }
    const int rest = work.batch->head_dim - 2 * pairs;
    if (rest > 0 && first == 0 && from != to) {
      std::memcpy(to + 2 * pairs, from + 2 * pairs, std::size_t(rest) * sizeof(T));
    }
  }
}

template <typename E>
void rotate_heads_as(const RotaryWork& work, std::int64_t begin, std::int64_t end) {
  const Batch& batch = *work.batch;
  const int pairs = work.table->pairs();
  const int queries = batch.queries.count;
  const std::int64_t heads = queries + batch.keys.count;
  Row row;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t index = at / heads;  // of the token among all sequences
    const int first_head = int(at - index * heads);
    const int last_head = int(std::min(heads, first_head + end - at));
    const std::int64_t sequence = index / batch.tokens;
    const std::int64_t token = index - sequence * batch.tokens;
    const std::int64_t position =
        batch.positions ? batch.positions[index] : batch.first_position + token;
    for (int first = 0; first < pairs; first += kTile) {
      const int count = std::min(kTile, pairs - first);
      prepare(work, position, first, count, row);
      turn_heads<E>(work, batch.queries, sequence, token, first_head,
                    std::min(queries, last_head), first, count, row);
      turn_heads<E>(work, batch.keys, sequence, token, std::max(0, first_head - queries),
                    last_head - queries, first, count, row);
    }
    at += last_head - first_head;
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

template <typename E>
void convert_as(const void* from, void* to, std::int64_t count) {
  const auto* x = static_cast<const typename E::Type*>(from);
  auto* y = static_cast<typename E::Type*>(to);
  std::int64_t i = 0;
  if constexpr (E::kWide) {
    const Floats d;
    const auto n = std::int64_t(hn::Lanes(d));
    for (; i + 2 * n <= count; i += 2 * n) {
      const auto a = E::load(d, x + i);
      const auto b = E::load(d, x + i + n);
      E::store(a, d, y + i);
      E::store(b, d, y + i + n);
    }
  }
  for (; i < count; ++i) E::put(E::get(x + i), y + i);
}

void convert_here(Element element, const void* from, void* to, std::int64_t count) {
  switch (element) {
    case Element::f32:
      return convert_as<F32>(from, to, count);
    case Element::f16:
      return convert_as<F16>(from, to, count);
    case Element::bf16:
      return convert_as<BF16>(from, to, count);
  }
}

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
