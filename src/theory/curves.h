// SPDX-License-Identifier: Apache-2.0
// Theory: the figures of the MrRoPE paper as numbers, for any plan. Everything is computed in
// double from a plan's theta (radians per position, one per pair).
//
// Errors: theta is a rounded double, so an angle at position m is off by at most about
// 1.2e-16 * m * theta; at m = 10^6 a cosine is right to 2e-10 and a sum of 64 to 1e-8.
#pragma once

#include "mrrope/plan.h"

namespace mrrope::theory {

// ---- Digits: a position as a number in the mixed radix lambda * beta.

struct NumberSystem {          // one of each per digit
  std::vector<double> weight;  // of one: the product of the radices before it, 1 / theta
  std::vector<double> radix;   // beta * lambda; the last digit's lambda is 1
};
NumberSystem number_system(const Plan& plan);

// floor(position / weight) mod radix
std::vector<double> digits_of(const Plan& plan, double position);

// How many positions the digits can write, 0 included: the weight of the last times its radix.
// Beyond that the last digit starts again.
double writable_positions(const Plan& plan);

// Back to a position as the paper does it: the sum over digits of weight * value. It is the
// position where every radix is an integer. RoPE's radices are fractions a little above 1: then
// the digits of a position overlap, and the sum is several times the position.
double digit_sum(const Plan& plan, std::span<const double> values);

// Every position below writable_positions() that has these digits. Neighbours with the same digits
// are one range: PI has those, a radix conversion does not. A value counts as the same within
// `tolerance` of it, or of 1 if it is less. Throws Error (usage): not one value per pair, a value
// below 0, values so vague that the search is too long.
using PositionRange = std::pair<std::int64_t, std::int64_t>;  // first and last, both included
std::vector<PositionRange> positions_of(const Plan& plan, std::span<const double> values,
                                        double tolerance = 1e-9);

// The first digit that makes no whole cycle below `length`: length < weight * radix. The number of
// digits if all do.
int first_open_digit(const Plan& plan, std::int64_t length);
// The same of the rotation itself: the first pair with length * theta < 2 pi.
int first_open_pair(const Plan& plan, std::int64_t length);

// By how much the representable range grows: the product of the lambdas.
double range_growth(const Plan& plan);

// Positions 1 .. length-1 with the same digits as the one before: PI has them, a radix conversion
// does not.
std::int64_t colliding_positions(const Plan& plan, std::int64_t length);

// ---- Estimate: what position the angles suggest if read as digits,
// m-hat(m) = sum over pairs of (m theta mod 2 pi) / theta, for m = 0 .. length-1.
// A term jumps by 2 pi / theta where its angle passes a turn: within the error above of such a
// place the jump may come one position early or late.
std::vector<double> position_estimate(std::span<const double> theta, std::int64_t length);

// How far a straight line through the origin fits: the largest n such that for every n' <= n the
// relative error sqrt(sum (y - s m)^2 / sum y^2) of the least-squares line over 0 .. n'-1 is at
// most `bound`.
struct LinearRange {
  std::int64_t length = 0;
  double slope = 0;  // of the line over that range
  double error = 0;  // its relative error
};
LinearRange linear_range(std::span<const double> estimate, double bound);

// ---- Bound: B(m) = sum over pairs of cos(m theta). Below 0 a similar token gets less attention
// than a random one.
std::vector<double> cosine_sum(std::span<const double> theta, std::int64_t length);

// The smallest m < limit with B(m) < 0; nullopt if there is none.
std::optional<std::int64_t> first_negative(std::span<const double> theta, std::int64_t limit);

// How much a curve moves.
struct Oscillation {
  double variation = 0;  // sum of |y(m+1) - y(m)|
  double spread = 0;     // standard deviation
};
Oscillation oscillation_of(std::span<const double> curve);

// ---- Angles: what each pair meets at `length` under the plan (from 0, at most a whole turn) and
// did not see in training, as a share of a turn.
std::vector<double> new_angles(const Plan& plan, std::int64_t length);

// What the pairs first .. last-1 of two head vectors, rotated or not, add to their dot product.
double pair_score(std::span<const float> query, std::span<const float> key, int first, int last,
                  const Geometry& geometry);

// The largest difference between the distribution functions of two samples; 1 where one is empty.
double kolmogorov_smirnov(std::vector<double> a, std::vector<double> b);

// How far a noisy mean falls: the index up to which no value exceeds the lowest one before it by
// more than two standard errors of the difference. Errors as many as values.
std::size_t falling_until(std::span<const double> mean, std::span<const double> error);

}  // namespace mrrope::theory
