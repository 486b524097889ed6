// SPDX-License-Identifier: Apache-2.0
// A batch with random numbers, and its check: every element of every head against the reference,
// within the bound of docs/design/numerics.md, and nothing else written. For the CPU and the GPU
// alike.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "kernels/half.h"
#include "models/rotary_reference.h"
#include "mrrope/rotary.h"

namespace mrrope::test {

// Largest relative error of rounding to nearest.
inline double rounding(Element element) {
  return element == Element::f32 ? 0x1p-24 : element == Element::f16 ? 0x1p-11 : 0x1p-8;
}

// docs/design/numerics.md: for a pair of length `size` after the turn. `angles` is the error of
// cosine and sine: rounding(table.element()), or kComputedAngles on the GPU.
constexpr double kComputedAngles = 4 * 0x1p-24;
inline double error_bound(Element element, double angles, double size) {
  const double least = element == Element::f16 ? 0x1p-25 : 0;  // half a step of subnormals
  return size * (angles + 3 * 0x1p-24 + (element == Element::f32 ? 0 : rounding(element))) + least;
}

// Elements of any type in memory that begins `shift` elements past a multiple of 64 bytes.
class Numbers {
 public:
  Numbers(Element element, std::size_t count, std::size_t shift)
      : element_(element), count_(count), bytes_(count * bytes_of(element) + 128) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    begin_ = (64 - address % 64) % 64 + shift * bytes_of(element);
  }
  // The copy would have another alignment.
  Numbers(Numbers&&) = default;
  Numbers& operator=(Numbers&&) = default;

  std::byte* data() { return bytes_.data() + begin_; }
  const std::byte* data() const { return bytes_.data() + begin_; }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * bytes_of(element_); }

  double at(std::size_t i) const {
    if (element_ == Element::f32) {
      float value;
      std::memcpy(&value, data() + 4 * i, 4);
      return double(value);
    }
    std::uint16_t bits;
    std::memcpy(&bits, data() + 2 * i, 2);
    return double(element_ == Element::f16 ? float_from_f16(bits) : float_from_bf16(bits));
  }
  void set(std::size_t i, float value) {
    if (element_ == Element::f32) {
      std::memcpy(data() + 4 * i, &value, 4);
      return;
    }
    const std::uint16_t bits = element_ == Element::f16 ? f16_from(value) : bf16_from(value);
    std::memcpy(data() + 2 * i, &bits, 2);
  }

 private:
  Element element_;
  std::size_t count_;
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;
};

struct TrialSetup {
  Element element = Element::f32;
  int head_dim = 128;
  int queries = 3;
  int keys = 2;
  std::int64_t sequences = 1;
  std::int64_t tokens = 7;
  bool head_major = false;
  std::int64_t gap = 0;   // unused elements after every head
  std::size_t shift = 0;  // elements by which the buffers miss their alignment
  bool in_place = true;
  bool inverse = false;
  std::vector<std::int32_t> positions{};  // empty: from first_position on
  std::int64_t first_position = 0;

  std::string text() const {
    return cat(to_string(element), ", head_dim ", head_dim, ", heads ", queries, "+", keys, ", ",
               sequences, " x ", tokens, head_major ? " head-major" : " token-major", ", gap ", gap,
               ", shift ", shift, in_place ? ", in place" : ", out of place",
               inverse ? ", inverse" : "",
               positions.empty() ? cat(", from ", first_position) : std::string(", positions"));
  }
};

// Makes the numbers and the batch that points to them.
class Trial {
 public:
  explicit Trial(const TrialSetup& setup, unsigned seed = 1) : setup_(setup) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal;
    batch.element = setup.element;
    batch.head_dim = setup.head_dim;
    batch.sequences = setup.sequences;
    batch.tokens = setup.tokens;
    batch.first_position = setup.first_position;
    batch.inverse = setup.inverse;
    batch.positions = setup_.positions.empty() ? nullptr : setup_.positions.data();
    for (int side = 0; side < 2; ++side) {
      const int heads = side == 0 ? setup.queries : setup.keys;
      const int room = int(setup.head_dim + setup.gap);
      const Strides strides = setup.head_major ? head_major(setup.tokens, heads, room)
                                               : token_major(setup.tokens, heads, room);
      const auto count = std::size_t(setup.sequences * setup.tokens * heads * room);
      from.emplace_back(setup.element, count, setup.shift);
      to.emplace_back(setup.element, count, setup.shift);
      before.emplace_back(setup.element, count, setup.shift);
      for (std::size_t i = 0; i < count; ++i) {
        from[side].set(i, normal(rng));
        to[side].set(i, 77);
        before[side].set(i, 77);
      }
      if (setup.in_place) std::memcpy(to[side].data(), from[side].data(), from[side].bytes());
      if (setup.in_place) std::memcpy(before[side].data(), from[side].data(), from[side].bytes());
      Heads& h = side == 0 ? batch.queries : batch.keys;
      h = {heads, setup.in_place ? to[side].data() : from[side].data(), strides, to[side].data(),
           strides};
    }
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  std::int64_t position(std::int64_t sequence, std::int64_t token) const {
    return batch.positions ? batch.positions[sequence * setup_.tokens + token]
                           : setup_.first_position + token;
  }

  // The batch after rotation, against `unit`, the reference applied to a head with a = 1 and b = 0
  // in every pair (so that it holds cosines and sines). Returns the first complaint, or nothing;
  // `worst` becomes the largest error over its bound.
  using Unit = std::function<std::vector<double>(std::int64_t position)>;
  std::string judge(Pairing pairing, int rotary_dim, double angles, const Unit& unit,
                    double* worst = nullptr) const {
    std::map<std::int64_t, std::vector<double>> units;
    for (int side = 0; side < 2; ++side) {
      const Heads& h = side == 0 ? batch.queries : batch.keys;
      std::vector<bool> written(to[side].size());
      for (std::int64_t s = 0; s < setup_.sequences; ++s) {
        for (std::int64_t t = 0; t < setup_.tokens; ++t) {
          const std::int64_t p = position(s, t);
          if (!units.count(p)) units[p] = unit(p);
          for (int head = 0; head < h.count; ++head) {
            const auto at = std::size_t(s * h.to_strides.sequence + t * h.to_strides.token +
                                        head * h.to_strides.head);
            const std::string complaint =
                judge_head(side, at, pairing, rotary_dim, angles, units[p], written, worst);
            if (!complaint.empty()) {
              return cat(side == 0 ? "query" : "key", " head ", head, " at position ", p, ": ",
                         complaint, " (", setup_.text(), ")");
            }
          }
        }
      }
      for (std::size_t i = 0; i < written.size(); ++i) {
        if (!written[i] && to[side].at(i) != before[side].at(i)) {
          return cat("element ", i, " between the heads was written (", setup_.text(), ")");
        }
      }
    }
    return {};
  }

  // Not one byte differs from before the call.
  bool untouched() const {
    for (int side = 0; side < 2; ++side) {
      if (std::memcmp(to[side].data(), before[side].data(), to[side].bytes()) != 0) return false;
    }
    return true;
  }

  Batch batch;
  std::vector<Numbers> from, to, before;  // queries, keys

 private:
  std::string judge_head(int side, std::size_t at, Pairing pairing, int rotary_dim, double angles,
                         const std::vector<double>& unit, std::vector<bool>& written,
                         double* worst) const {
    const int pairs = rotary_dim / 2;
    for (int i = 0; i < pairs; ++i) {
      const auto ia = std::size_t(pairing == Pairing::halves ? i : 2 * i);
      const auto ib = std::size_t(pairing == Pairing::halves ? i + pairs : 2 * i + 1);
      const double a = from[side].at(at + ia), b = from[side].at(at + ib);
      const double c = unit[ia], s = unit[ib];
      const double bound = error_bound(setup_.element, angles, std::hypot(a, b) * std::hypot(c, s));
      const double want[] = {a * c - b * s, a * s + b * c};
      const double got[] = {to[side].at(at + ia), to[side].at(at + ib)};
      for (int k = 0; k < 2; ++k) {
        const double error = std::abs(got[k] - want[k]);
        if (worst && error / bound > *worst) *worst = error / bound;
        if (!(error <= bound)) {
          return cat("pair ", i, ": ", got[k], " instead of ", want[k], ", an error of ", error,
                     " over the bound ", bound);
        }
      }
      written[at + ia] = written[at + ib] = true;
    }
    for (int i = rotary_dim; i < setup_.head_dim; ++i) {
      if (to[side].at(at + std::size_t(i)) != from[side].at(at + std::size_t(i))) {
        return cat("element ", i, " past rotary_dim changed");
      }
      written[at + std::size_t(i)] = true;
    }
    return {};
  }

  TrialSetup setup_;
};

// a = 1, b = 0 in every pair of a head.
inline std::vector<double> unit_head(const Geometry& geometry) {
  std::vector<double> x(std::size_t(geometry.rotary_dim), 0);
  for (int i = 0; i < geometry.rotary_dim / 2; ++i) {
    x[std::size_t(geometry.pairing == Pairing::halves ? i : 2 * i)] = 1;
  }
  return x;
}

inline Trial::Unit rotated_unit(const Plan& plan, bool inverse = false) {
  return [plan, inverse](std::int64_t position) {
    std::vector<double> x = unit_head(plan.geometry());
    inverse ? unrotate_reference(plan, double(position), x)
            : rotate_reference(plan, double(position), x);
    return x;
  };
}

inline Trial::Unit turned_unit(const Plan& a, const Plan& b) {
  return [a, b](std::int64_t position) {
    std::vector<double> x = unit_head(a.geometry());
    turn_reference(a, b, double(position), x);
    return x;
  };
}

// What the kernels of the CPU and of the GPU are tried with.
inline Plan trial_plan(int rotary_dim, Pairing pairing, const char* method = "pro",
                       double scale = 8) {
  return make_plan(
      {.rotary_dim = rotary_dim, .base = 5e5, .train_length = 8192, .pairing = pairing},
      {.method = method, .scale = scale});
}

constexpr std::int32_t kFar = 1048575;
inline const std::vector<std::int32_t> kPositions = {0, 1, 4095, 39001, 131071, 7, 7, 1000};

// Every layout and size; some heads have `past` elements that do not rotate.
inline std::vector<TrialSetup> trial_setups(Element element, int rotary_dim, int past) {
  std::vector<TrialSetup> setups;
  for (int variant = 0; variant < 24; ++variant) {
    TrialSetup& setup = setups.emplace_back();
    setup.element = element;
    setup.head_dim = variant % 3 == 1 ? rotary_dim + past : rotary_dim;
    setup.queries = variant % 5 == 4 ? 9 : 3;
    setup.keys = variant % 7 == 6 ? 0 : 2;
    setup.in_place = variant % 2 == 0;
    setup.head_major = variant % 4 >= 2;
    setup.inverse = variant % 8 >= 6;
    setup.gap = variant == 9 ? 1 : variant == 10 ? 8 : 0;
    setup.shift = variant == 11 ? 1 : variant == 12 ? 3 : 0;
    setup.sequences = variant >= 16 ? 2 : 1;
    setup.tokens = std::int64_t(kPositions.size()) / setup.sequences;
    setup.positions = kPositions;
    if (variant == 20) {
      setup.positions.clear();
      setup.first_position = 4090;
    }
  }
  return setups;
}

// The same at the eight positions up to kFar.
inline TrialSetup far_away(TrialSetup setup) {
  if (setup.positions.empty()) setup.first_position = kFar - 7;
  for (std::int32_t& p : setup.positions) p = kFar - p % 8;
  return setup;
}

inline double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

inline double largest_difference(const Numbers& a, const Numbers& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a.at(i) - b.at(i));
    if (std::isnan(difference)) return difference;
    largest = std::max(largest, difference);
  }
  return largest;
}

// Scores depend on distance only, norms stay (up to the attention scale), and the inverse undoes a
// rotation up to `noise`. Returns the first complaint, or nothing. `rotation` rotates a trial's
// batch by the plan, at positions below 131600.
using Rotation = std::function<void(Trial& trial, const TrialSetup& setup)>;
inline std::string judge_properties(const Plan& plan, const Rotation& rotation, double noise) {
  TrialSetup setup{.queries = 1, .keys = 1, .tokens = 1};
  const auto rotated = [&](std::int32_t position, int side) {
    setup.positions = {position};
    Trial trial(setup);
    rotation(trial, setup);
    return std::move(trial.to[side]);
  };
  const Numbers q1 = rotated(700, 0), k1 = rotated(200, 1);
  const Numbers q2 = rotated(131571, 0), k2 = rotated(131071, 1);
  const double near = dot(q1, k1);
  if (!(std::abs(near - dot(q2, k2)) < 1e-4)) return "scores depend on more than distance";
  if (!(std::abs(near - dot(q1, k2)) > 1e-2)) return "scores do not depend on distance";
  setup.positions = {131571};
  setup.inverse = true;
  Trial undone(setup);  // of the same numbers
  const double t = plan.attention_scale();
  const double before = dot(undone.from[0], undone.from[0]) * t * t;
  if (!(std::abs(dot(q2, q2) / before - 1) < 1e-6)) return "the norm changed";
  std::memcpy(undone.to[0].data(), q2.data(), q2.bytes());
  rotation(undone, setup);
  const double apart = largest_difference(undone.to[0], undone.from[0]);
  return apart < noise ? "" : cat("the inverse misses by ", apart);
}

}  // namespace mrrope::test
