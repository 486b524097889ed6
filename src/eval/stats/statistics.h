// SPDX-License-Identifier: Apache-2.0
// What may be concluded from a handful of documents. The unit of chance is the document: tokens of
// one document depend on each other, so no error is ever computed over tokens.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mrrope {

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

// Two methods on the same documents. `log_ratio` is the mean of a[i] - b[i]; the test is the
// two-sided paired t test with n - 1 degrees of freedom on these differences.
struct PairedDifference {
  Estimate log_ratio;
  double p = 1;  // NaN for n < 2; 1 where all differences are 0

  // exp(log_ratio) - 1 in percent: a is so much worse than b.
  Estimate percent() const;
};

PairedDifference paired(std::span<const double> a, std::span<const double> b);

// Probability that |T| >= |t| for Student's t distribution.
double student_two_sided(double t, double degrees);

// Holm's correction: p values that may be read side by side. NaN stays NaN and does not count.
std::vector<double> holm(std::span<const double> p);

}  // namespace mrrope
