// SPDX-License-Identifier: Apache-2.0
// The reference that every fast kernel is tested against: one head vector, slow and obvious. Angles
// are formed and reduced in long double, so the only error left is the rounding of the elements.
//
// A head is a vector or span of double or long double with at least rotary_dim elements; those past
// rotary_dim are left alone.
#pragma once

#include <cmath>
#include <numbers>
#include <span>

#include "base/text.h"
#include "mrrope/plan.h"

namespace mrrope {

// Turns every pair i of x by angle(i) radians and multiplies it by `scale`.
template <typename T, typename Angle>
void turn_pairs(const Geometry& g, Angle angle, long double scale, std::span<T> x) {
  if (x.size() < std::size_t(g.rotary_dim)) {
    refuse(cat("a vector of ", x.size(), " elements is shorter than rotary_dim ", g.rotary_dim),
           "pass one whole head");
  }
  const int pairs = pair_count(g);
  const bool halves = g.pairing == Pairing::halves;
  for (int i = 0; i < pairs; ++i) {
    T& a = x[halves ? i : 2 * i];
    T& b = x[halves ? i + pairs : 2 * i + 1];
    const long double reduced = std::fmod(angle(i), 2 * std::numbers::pi_v<long double>);
    const long double c = scale * std::cos(reduced);
    const long double s = scale * std::sin(reduced);
    const long double old_a = a;
    const long double old_b = b;
    a = T(old_a * c - old_b * s);
    b = T(old_a * s + old_b * c);
  }
}

inline long double whole_scale(const Plan& plan) {
  return (long double)(plan.attention_scale()) * plan.geometry().trained_attention_scale;
}

// Turned by position * theta and multiplied by the plan's and the model's attention scale.
template <typename Head>
void rotate_reference(const Plan& plan, double position, Head&& head) {
  const auto angle = [&](int i) { return (long double)(position)*plan.theta()[i]; };
  turn_pairs(plan.geometry(), angle, whole_scale(plan), std::span(head));
}

// Undoes rotate_reference.
template <typename Head>
void unrotate_reference(const Plan& plan, double position, Head&& head) {
  const auto angle = [&](int i) { return -(long double)(position)*plan.theta()[i]; };
  turn_pairs(plan.geometry(), angle, 1 / whole_scale(plan), std::span(head));
}

// From a vector rotated under `from` to the same vector rotated under `to`, in one turn by
// position * (theta_to - theta_from). Throws Error (usage) if the two plans differ in rotary_dim
// or pairing.
template <typename Head>
void turn_reference(const Plan& from, const Plan& to, double position, Head&& head) {
  const Geometry& a = from.geometry();
  const Geometry& b = to.geometry();
  if (a.rotary_dim != b.rotary_dim || a.pairing != b.pairing) {
    refuse(cat("cannot turn keys of rotary_dim ", a.rotary_dim, ", ", to_string(a.pairing),
               " into rotary_dim ", b.rotary_dim, ", ", to_string(b.pairing)),
           "both plans must belong to one model");
  }
  const auto angle = [&](int i) {
    return (long double)(position) * ((long double)(to.theta()[i]) - from.theta()[i]);
  };
  turn_pairs(a, angle, whole_scale(to) / whole_scale(from), std::span(head));
}

}  // namespace mrrope
