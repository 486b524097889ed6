// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "base/text.h"
#include "mrrope/rotary.h"

namespace mrrope {

namespace {

using Real = long double;
constexpr Real kTurn = 2 * std::numbers::pi_v<Real>;

// Turns every pair i of x by angle(i) radians and multiplies it by `scale`.
template <typename T, typename Angle>
void apply(const Geometry& g, Angle angle, Real scale, std::span<T> x) {
  if (x.size() < std::size_t(g.rotary_dim)) {
    refuse(cat("a vector of ", x.size(), " elements is shorter than rotary_dim ", g.rotary_dim),
           "pass one whole head");
  }
  const int pairs = pair_count(g);
  const bool halves = g.pairing == Pairing::halves;
  for (int i = 0; i < pairs; ++i) {
    T& a = x[halves ? i : 2 * i];
    T& b = x[halves ? i + pairs : 2 * i + 1];
    const Real reduced = std::fmod(angle(i), kTurn);
    const Real c = scale * std::cos(reduced);
    const Real s = scale * std::sin(reduced);
    const Real old_a = a;
    const Real old_b = b;
    a = T(old_a * c - old_b * s);
    b = T(old_a * s + old_b * c);
  }
}

Real scale_of(const Plan& plan) {
  return Real(plan.attention_scale()) * plan.geometry().trained_attention_scale;
}

template <typename T>
void rotate(const Plan& plan, double position, std::span<T> x) {
  const auto angle = [&](int i) { return Real(position) * plan.theta()[i]; };
  apply(plan.geometry(), angle, scale_of(plan), x);
}

template <typename T>
void unrotate(const Plan& plan, double position, std::span<T> x) {
  const auto angle = [&](int i) { return -Real(position) * plan.theta()[i]; };
  apply(plan.geometry(), angle, 1 / scale_of(plan), x);
}

template <typename T>
void turn(const Plan& from, const Plan& to, double position, std::span<T> x) {
  const Geometry& a = from.geometry();
  const Geometry& b = to.geometry();
  if (a.rotary_dim != b.rotary_dim || a.pairing != b.pairing) {
    refuse(cat("cannot turn keys of rotary_dim ", a.rotary_dim, ", ", to_string(a.pairing),
               " into rotary_dim ", b.rotary_dim, ", ", to_string(b.pairing)),
           "both plans must belong to one model");
  }
  const auto angle = [&](int i) {
    return Real(position) * (Real(to.theta()[i]) - Real(from.theta()[i]));
  };
  apply(a, angle, scale_of(to) / scale_of(from), x);
}

}  // namespace

void rotate_reference(const Plan& plan, double position, std::span<double> x) {
  rotate(plan, position, x);
}
void rotate_reference(const Plan& plan, double position, std::span<long double> x) {
  rotate(plan, position, x);
}
void unrotate_reference(const Plan& plan, double position, std::span<double> x) {
  unrotate(plan, position, x);
}
void unrotate_reference(const Plan& plan, double position, std::span<long double> x) {
  unrotate(plan, position, x);
}
void turn_reference(const Plan& from, const Plan& to, double position, std::span<double> x) {
  turn(from, to, position, x);
}
void turn_reference(const Plan& from, const Plan& to, double position, std::span<long double> x) {
  turn(from, to, position, x);
}

}  // namespace mrrope
