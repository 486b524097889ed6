// SPDX-License-Identifier: Apache-2.0
// The score of a query and a key as a function of their distance, for any plan at once: what was
// captured before rotation is turned here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mrrope/geometry.h"

namespace mrrope {

// Queries and keys of a model before they are rotated.
struct CapturedLayer {
  int layer = 0;
  int heads = 0;
  int kv_heads = 0;
  int row = 0;                 // numbers per head vector; the first rotary_dim are rotated
  std::vector<float> queries;  // [token][head][row]
  std::vector<float> keys;     // [token][kv_head][row]
};

struct Capture {
  std::int64_t tokens = 0;
  std::vector<CapturedLayer> layers;
};

// A query and an earlier key of one layer, by their positions; head is the query's.
struct PairPlace {
  int layer = 0;
  int head = 0;
  std::int64_t query = 0;
  std::int64_t key = 0;
};
// Their head vectors after rotation, as the model computes them.
struct RotatedPair {
  std::vector<float> query, key;
};
struct LayerHeads {
  int layer = 0;
  int heads = 0;  // of queries
};

// Per pair, query times conjugate of key as complex numbers: rotated by m and n, their product is
// re cos(d theta) - im sin(d theta) with d = m - n.
struct PairProduct {
  std::vector<double> re, im;
};
PairProduct pair_product(std::span<const float> query, std::span<const float> key, int pairs,
                         Pairing pairing);

// The angles of the pairs first .. last-1 at one distance, made once for many products.
struct Turn {
  std::size_t first = 0;
  std::vector<double> cosine, sine;
};
Turn turn_at(std::span<const double> theta, int first, int last, double distance);

// Sum over those pairs at that distance.
double score_at(const PairProduct& product, const Turn& turn);

// The largest difference between the distribution functions of two samples; 1 where one is empty.
double kolmogorov_smirnov(std::vector<double> a, std::vector<double> b);

// How far a noisy mean falls: the index up to which no value exceeds the lowest one before it by
// more than two standard errors of the difference. Errors as many as values.
std::size_t falling_until(std::span<const double> mean, std::span<const double> error);

}  // namespace mrrope
