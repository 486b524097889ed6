// SPDX-License-Identifier: Apache-2.0
// Statistics over a handful of documents. The unit of sampling is the document: tokens of one
// document depend on each other, so no error is ever computed over tokens.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mrrope::eval {

// value and error are NaN where nothing can be said: value for n = 0, error for n < 2.
struct Estimate {
  double value;
  double error;  // standard error
  std::size_t n = 0;

  Estimate();
  Estimate(double v, double e, std::size_t count) : value(v), error(e), n(count) {}
};

// Mean, and sample standard deviation over sqrt(n).
Estimate mean(std::span<const double> values);

// sum(y) / sum(w) where documents weigh w, with the linearised error of a ratio over documents.
// Equal weights give mean(y / w).
Estimate weighted_mean(std::span<const double> y, std::span<const double> w);

// exp(value) with error exp(value) * error (delta method): perplexity from mean log loss.
Estimate exponential(const Estimate& log);

// Two methods on the same documents or samples: the mean of a[i] - b[i], and the two-sided paired t
// test with n - 1 degrees of freedom on these differences.
struct PairedDifference {
  Estimate mean_difference;
  double p = 1;  // NaN for n < 2; 1 where all differences are 0

  // exp(mean_difference) - 1 in percent: of logarithms, by how much a is above b.
  Estimate percent() const;
};

PairedDifference paired(std::span<const double> a, std::span<const double> b);
// Only where both values are finite.
PairedDifference paired_where_both(std::span<const double> a, std::span<const double> b);

// The same for values that have keys: only keys that both have.
template <typename Key>
PairedDifference paired_where_both(const std::map<Key, double>& a, const std::map<Key, double>& b) {
  std::vector<double> x;
  std::vector<double> y;
  for (const auto& [key, value] : a) {
    const auto other = b.find(key);
    if (other == b.end()) continue;
    x.push_back(value);
    y.push_back(other->second);
  }
  return paired_where_both(std::span<const double>(x), std::span<const double>(y));
}

// Probability that |T| >= |t| for Student's t distribution.
double student_two_sided(double t, double degrees);

// Holm's correction of p values for multiple comparisons. NaN stays NaN and does not count.
std::vector<double> holm(std::span<const double> p);

}  // namespace mrrope::eval
