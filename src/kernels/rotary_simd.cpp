// SPDX-License-Identifier: Apache-2.0
#include "kernels/rotary_simd.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/half.h"
#if MRROPE_HAS_BF16_OBJECT
#include <sys/auxv.h>
#endif

// rotary_simd_bf16.cpp compiles this file once more, for Arm processors that round to bf16.
#ifndef MRROPE_ROUNDS_BF16
#define MRROPE_ROUNDS_BF16 0
#endif

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

#include "kernels/rotary_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mrrope {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Heads of one side of some tokens of one sequence.
template <class T>
struct Span {
  const T* from;
  T* to;
  std::int64_t from_head, from_token, to_head, to_token;  // strides
  int heads;
  int tokens;
};

// Cosines of every token of a span; its sines are `sines` floats further.
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

// Pairs [begin, end), the other half `pairs` further or, of a type that takes neighbours apart,
// next to the first; cosines and sines as the type reads the halves.
template <class E, bool kHalves, int kEnd, class D, class T = typename E::Type>
HWY_NOINLINE void turn_pairs(D d, const Span<T>& x, int pairs, const Rows& rows, int begin,
                             int end) {
  if (kEnd) pairs = end = kEnd, begin = 0;  // known to the compiler
  const int n = int(hn::Lanes(d));
  for (int t = 0; t < x.tokens; ++t) {
    const float* HWY_RESTRICT c = rows.cosines[t];
    const float* HWY_RESTRICT s = c + rows.sines;
    const T* from = x.from + t * x.from_token;
    T* to = x.to + t * x.to_token;
    for (int h = 0; h < x.heads; ++h, from += x.from_head, to += x.to_head) {
      HWY_UNROLL(8)
      for (int i = begin; i < end; i += 2 * n) {
        const auto c0 = hn::LoadU(d, c + i), c1 = hn::LoadU(d, c + i + n);
        const auto s0 = hn::LoadU(d, s + i), s1 = hn::LoadU(d, s + i + n);
        hn::Vec<D> a0, a1, b0, b1;
        if constexpr (kHalves) {
          E::load(d, from + i, a0, a1);
          E::load(d, from + i + pairs, b0, b1);
        } else {
          E::load_apart(d, from + 2 * i, a0, a1, b0, b1);
        }
        const auto x0 = hn::NegMulAdd(b0, s0, hn::Mul(a0, c0));
        const auto x1 = hn::NegMulAdd(b1, s1, hn::Mul(a1, c1));
        const auto y0 = hn::MulAdd(a0, s0, hn::Mul(b0, c0));
        const auto y1 = hn::MulAdd(a1, s1, hn::Mul(b1, c1));
        if constexpr (kHalves) {
          E::store(x0, x1, d, to + i);
          E::store(y0, y1, d, to + i + pairs);
        } else {
          E::store_apart(x0, x1, y0, y1, d, to + 2 * i);
        }
      }
    }
  }
}

// Elements [begin, end) of neighbours in memory order: every cosine is read twice, every sine as
// -s, s.
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
        const auto c0 = hn::LoadU(d, c + i), c1 = hn::LoadU(d, c + i + n);
        const auto s0 = hn::LoadU(d, s + i), s1 = hn::LoadU(d, s + i + n);
        E::store(hn::MulAdd(hn::Reverse2(d, a), s0, hn::Mul(a, c0)),
                 hn::MulAdd(hn::Reverse2(d, b), s1, hn::Mul(b, c1)), d, to + i);
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
        const bool twice = !halves && !E::kApart;
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
      const auto in_pairs = [&](auto is_halves) HWY_ATTR {
        constexpr bool kHalves = decltype(is_halves)::value;
        const int end = done + in_vectors<E>(d, count - done);
        if (end == 64 && pairs == 64 && done == 0) {
          turn_pairs<E, kHalves, 64>(d, x, pairs, rows, done, end);
        } else if (end == 32 && pairs == 32 && done == 0) {
          turn_pairs<E, kHalves, 32>(d, x, pairs, rows, done, end);
        } else if (end > done) {
          turn_pairs<E, kHalves, 0>(d, x, pairs, rows, done, end);
        }
        done = end;
      };
      if (halves) {
        in_pairs(std::true_type());
      } else if constexpr (E::kApart) {
        in_pairs(std::false_type());
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
// that the loops above read, either in the table itself or in `floats`. Long steps, because
// queries and keys are apart: processors read and write long stretches faster.
constexpr int kPairs = 512;
constexpr int kTokens = 1024;
constexpr int kFloats = 8192;  // 32 KiB of the stack
struct Tile {
  const float* cosines[kTokens];
  alignas(64) float floats[kFloats];
};

// Whether the loops can read the rows of the table themselves.
template <class E>
bool rows_in_order(const RotaryWork& work) {
  return work.table->pairing() == Pairing::halves ? !E::kSplit || !E::kWide : E::kApart;
}
bool rows_as_stored(const RotaryWork& work) {
  return work.table->element() == Element::f32 && !work.batch->inverse;
}

// Out of the table into floats, in the same order.
template <class E, class T = typename E::Type>
void fill(const void* row, int first, int pairs, const RotaryWork& work, int count, float* c,
          float* s) {
  const T* from = static_cast<const T*>(row) + first;
  for (int i = 0; i < count; ++i) c[i] = E::get(from + i) * work.cos_gain;
  for (int i = 0; i < count; ++i) s[i] = E::get(from + i + pairs) * work.sin_gain;
}

// For the halves of a type that splits: even and odd ones of every two vectors apart.
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
  const bool as_is = rows_in_order<E>(work);
  const bool copy = !rows_as_stored(work);
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
      const bool direct = rows_in_order<E>(work) && rows_as_stored(work);
      const std::int64_t room = direct ? kTokens : kFloats / (4 * std::min(pairs, kPairs));
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
#if MRROPE_ROUNDS_BF16
  rotate_heads_as<BF16>(work, begin, end);
#else
  switch (work.batch->element) {
    case Element::f32:
      return rotate_heads_as<F32>(work, begin, end);
    case Element::f16:
      return rotate_heads_as<F16>(work, begin, end);
    case Element::bf16:
      return rotate_heads_as<BF16>(work, begin, end);
  }
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mrrope
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mrrope {

#if MRROPE_ROUNDS_BF16

void rotate_heads_bf16(const RotaryWork& work, std::int64_t begin, std::int64_t end) noexcept {
  HWY_STATIC_DISPATCH(rotate_heads_here)(work, begin, end);
}

#else

namespace {

#if MRROPE_HAS_BF16_OBJECT
constexpr const char* kRoundsBf16 = "NEON_ROUNDS_BF16";
const bool machine_rounds_bf16 = (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#else
constexpr const char* kRoundsBf16 = "";
constexpr bool machine_rounds_bf16 = false;
#endif
bool rounds_bf16 = machine_rounds_bf16;  // tests turn it off

}  // namespace

HWY_EXPORT(rotate_heads_here);

void rotate_heads(const RotaryWork& work, std::int64_t begin, std::int64_t end) noexcept {
#if MRROPE_HAS_BF16_OBJECT
  if (rounds_bf16 && work.batch->element == Element::bf16) {
    return rotate_heads_bf16(work, begin, end);
  }
#endif
  HWY_DYNAMIC_DISPATCH(rotate_heads_here)(work, begin, end);
}

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  if (machine_rounds_bf16) names.emplace_back(kRoundsBf16);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

void use_simd_target(const std::string& name) {
  rounds_bf16 = machine_rounds_bf16 && (name.empty() || name == kRoundsBf16);
  hwy::SetSupportedTargetsForTest(0);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name == hwy::TargetName(target)) hwy::SetSupportedTargetsForTest(target);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

#endif  // MRROPE_ROUNDS_BF16

}  // namespace mrrope
#endif  // HWY_ONCE
