// SPDX-License-Identifier: Apache-2.0
// Statistics over a handful of documents. The unit of sampling is the document: tokens of one
// document depend on each other, so no error is ever computed over tokens.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <utility>
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

// What was measured, by the unit that it is of. A task decides what the two numbers are: a
// document, a depth and a needle, a set and a sample.
using UnitValues = std::map<std::pair<std::size_t, std::size_t>, double>;

// Only units that both have, with finite values.
PairedDifference paired_where_both(const UnitValues& a, const UnitValues& b);

// Probability that |T| >= |t| for Student's t distribution.
double student_two_sided(double t, double degrees);

// Holm's correction of p values for multiple comparisons. NaN stays NaN and does not count.
std::vector<double> holm(std::span<const double> p);

}  // namespace mrrope::eval
