// SPDX-License-Identifier: Apache-2.0
#include "theory/attention_scores.h"

#include <algorithm>
#include <cmath>

namespace mrrope::theory {

PairProduct pair_product(std::span<const float> query, std::span<const float> key, int pairs,
                         Pairing pairing) {
  PairProduct out;
  for (int i = 0; i < pairs; ++i) {
    const bool halves = pairing == Pairing::halves;
    const auto a = std::size_t(halves ? i : 2 * i);
    const auto b = std::size_t(halves ? i + pairs : 2 * i + 1);
    const double q0 = query[a];
    const double q1 = query[b];
    const double k0 = key[a];
    const double k1 = key[b];
    out.re.push_back(q0 * k0 + q1 * k1);
    out.im.push_back(q1 * k0 - q0 * k1);
  }
  return out;
}

Angles angles_at(std::span<const double> theta, int first, int last, double distance) {
  Angles angles{std::size_t(first), {}, {}};
  for (auto i = std::size_t(first); i < std::size_t(last); ++i) {
    angles.cosine.push_back(std::cos(distance * theta[i]));
    angles.sine.push_back(std::sin(distance * theta[i]));
  }
  return angles;
}

double score_at(const PairProduct& product, const Angles& angles) {
  double sum = 0;
  for (std::size_t i = 0; i < angles.cosine.size(); ++i) {
    sum += product.re[angles.first + i] * angles.cosine[i] -
           product.im[angles.first + i] * angles.sine[i];
  }
  return sum;
}

double kolmogorov_smirnov(std::vector<double> a, std::vector<double> b) {
  if (a.empty() || b.empty()) return 1;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double largest = 0;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const double x = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= x) ++i;
    while (j < b.size() && b[j] <= x) ++j;
    largest =
        std::max(largest, std::abs(double(i) / double(a.size()) - double(j) / double(b.size())));
  }
  return largest;
}

std::size_t falling_until(std::span<const double> mean, std::span<const double> error) {
  std::size_t lowest = 0;
  for (std::size_t i = 1; i < mean.size(); ++i) {
    const double noise = std::hypot(error[i], error[lowest]);
    if (mean[i] - mean[lowest] > 2 * noise) return i - 1;
    if (mean[i] < mean[lowest]) lowest = i;
  }
  return mean.empty() ? 0 : mean.size() - 1;
}

}  // namespace mrrope::theory
