// SPDX-License-Identifier: Apache-2.0
// What the benchmarks of rotation share: shapes of models, their numbers, the check against the
// reference, and contestants that take turns.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "kernels/half.h"
#include "models/rotary_reference.h"
#include "mrrope/rotary.h"

using mrrope::Batch, mrrope::Element, mrrope::Pairing;

struct Shape {
  int queries, keys, head_dim;
};

inline constexpr Shape kShapes[] = {{32, 8, 128}, {9, 3, 64}};

inline mrrope::Geometry geometry_of(const Shape& shape, Pairing pairing) {
  return {.rotary_dim = shape.head_dim, .base = 5e5, .train_length = 8192, .pairing = pairing};
}

// Numbers between 0.25 and 1, so that no value is special.
inline void fill(void* to, std::size_t count, Element element) {
  for (std::size_t i = 0; i < count; ++i) {
    const float value = 0.25f + 0.75f * float((i * 2654435761u) >> 8 & 0xffff) / 65536;
    auto* half = static_cast<std::uint16_t*>(to);
    if (element == Element::f32) static_cast<float*>(to)[i] = value;
    if (element == Element::f16) half[i] = mrrope::f16_from(value);
    if (element == Element::bf16) half[i] = mrrope::bf16_from(value);
  }
}

inline double number(const void* data, std::size_t i, Element element) {
  if (element == Element::f32) return double(static_cast<const float*>(data)[i]);
  const std::uint16_t bits = static_cast<const std::uint16_t*>(data)[i];
  return double(element == Element::f16 ? mrrope::float_from_f16(bits)
                                        : mrrope::float_from_bf16(bits));
}

// Queries, then keys, token by token.
inline Batch batch_of(const Shape& shape, std::int64_t tokens, Element element,
                      const std::int32_t* positions, std::byte* from, std::byte* to) {
  Batch batch;
  batch.element = element;
  batch.head_dim = shape.head_dim;
  batch.tokens = tokens;
  batch.positions = positions;
  const auto keys = std::size_t(tokens * shape.queries * shape.head_dim) * bytes_of(element);
  const auto strides = [&](int heads) {
    return mrrope::token_major(tokens, heads, shape.head_dim);
  };
  batch.queries = {shape.queries, from, strides(shape.queries), to, strides(shape.queries)};
  batch.keys = {shape.keys, from + keys, strides(shape.keys), to + keys, strides(shape.keys)};
  return batch;
}

inline double bound_of(Element element) {
  return element == Element::f32 ? 2e-6 : element == Element::f16 ? 2e-3 : 1.5e-2;
}

// Some heads against the reference; ends the program if they disagree. read: copies the bytes of a
// head, at so many bytes from the first, before and after the rotation.
using ReadHead = std::function<void(std::size_t at, std::vector<std::byte>& before,
                                    std::vector<std::byte>& after)>;
inline void check(const mrrope::Plan& plan, const Shape& shape, std::int64_t tokens,
                  Element element, double bound, const char* who, const ReadHead& read) {
  std::vector<double> x(std::size_t(shape.head_dim), 0);
  std::vector<std::byte> before(x.size() * bytes_of(element)), after(before.size());
  for (const std::int64_t token : {std::int64_t(0), tokens / 3, tokens - 1}) {
    for (const int side : {0, 1}) {
      const int heads = side == 0 ? shape.queries : shape.keys;
      const std::int64_t first = side == 0 ? 0 : tokens * shape.queries;
      read(std::size_t(first + token * heads + heads - 1) * before.size(), before, after);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = number(before.data(), i, element);
      mrrope::rotate_reference(plan, double(token), x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = std::abs(x[i] - number(after.data(), i, element));
        if (error <= bound) continue;
        std::printf("WRONG: %s, token %lld, element %zu: off by %g\n", who,
                    static_cast<long long>(token), i, error);
        std::exit(1);
      }
    }
  }
}

inline double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

// Of what is divided in each round.
inline double median_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return median(ratios);
}

// The times of each contestant, which take turns; the first round warms up.
inline std::vector<std::vector<double>> in_turns(
    int rounds, const std::vector<std::function<double()>>& contestants) {
  std::vector<std::vector<double>> times(contestants.size());
  for (int r = 0; r <= rounds; ++r) {
    for (std::size_t k = 0; k < contestants.size(); ++k) {
      const double time = contestants[k]();
      if (r > 0) times[k].push_back(time);
    }
  }
  return times;
}
