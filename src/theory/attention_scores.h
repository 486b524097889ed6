// SPDX-License-Identifier: Apache-2.0
// The score of a query and a key as a function of their distance, for any plan at once: what was
// captured before rotation is rotated here.
#pragma once

#include <span>
#include <vector>

#include "mrrope/geometry.h"

namespace mrrope::theory {

// Per pair, query times conjugate of key as complex numbers: rotated by m and n, their product is
// re cos(d theta) - im sin(d theta) with d = m - n.
struct PairProduct {
  std::vector<double> re, im;
};
PairProduct pair_product(std::span<const float> query, std::span<const float> key, int pairs,
                         Pairing pairing);

// The angles of the pairs first .. last-1 at one distance, made once for many products.
struct Angles {
  std::size_t first = 0;
  std::vector<double> cosine, sine;
};
Angles angles_at(std::span<const double> theta, int first, int last, double distance);

// Sum over those pairs at that distance.
double score_at(const PairProduct& product, const Angles& angles);

// The largest difference between the distribution functions of two samples; 1 where one is empty.
double kolmogorov_smirnov(std::vector<double> a, std::vector<double> b);

// How far a noisy mean falls: the index up to which no value exceeds the lowest one before it by
// more than two standard errors of the difference. Errors as many as values.
std::size_t falling_until(std::span<const double> mean, std::span<const double> error);

}  // namespace mrrope::theory
