// SPDX-License-Identifier: Apache-2.0
#include "eval/stats/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "mrrope/error.h"

namespace mrrope::eval {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Continued fraction of the regularised incomplete beta function, by Lentz's method.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double result = d;
  for (int m = 1; m <= 10000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double step = 1;
    for (const double term : {even, odd}) {
      d = 1 + term * d;
      d = 1 / (std::abs(d) < kTiny ? kTiny : d);
      c = 1 + term / c;
      if (std::abs(c) < kTiny) c = kTiny;
      step = c * d;
      result *= step;
    }
    if (std::abs(step - 1) < 1e-15) break;
  }
  return result;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  // The fraction converges fast on one side of the mean only.
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

Estimate::Estimate() : value(kNan), error(kNan) {}

Estimate mean(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n == 0) return {};
  const double average = std::accumulate(values.begin(), values.end(), 0.0) / double(n);
  if (n == 1) return {average, kNan, 1};
  double squares = 0;
  for (const double v : values) squares += (v - average) * (v - average);
  return {average, std::sqrt(squares / double(n - 1) / double(n)), n};
}

Estimate exponential(const Estimate& log) {
  return {std::exp(log.value), std::exp(log.value) * log.error, log.n};
}

Estimate PairedDifference::percent() const {
  const Estimate ratio = exponential(mean_difference);
  return {100 * (ratio.value - 1), 100 * ratio.error, ratio.n};
}

PairedDifference paired(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) {
    throw Error(ErrorKind::failed, "a paired comparison needs the same documents on both sides",
                "this is a bug: please report it");
  }
  std::vector<double> difference(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  PairedDifference result;
  result.mean_difference = mean(difference);
  const Estimate& d = result.mean_difference;
  if (d.n < 2) {
    result.p = kNan;
  } else if (d.error == 0) {
    // All differences are equal, and t is not defined: how rarely random signs would all agree.
    result.p = d.value == 0 ? 1 : std::ldexp(1.0, 1 - int(std::min<std::size_t>(d.n, 1000)));
  } else {
    result.p = student_two_sided(d.value / d.error, double(d.n - 1));
  }
  return result;
}

PairedDifference paired_where_both(const UnitValues& a, const UnitValues& b) {
  std::vector<double> x;
  std::vector<double> y;
  for (const auto& [unit, value] : a) {
    const auto other = b.find(unit);
    if (other == b.end() || !std::isfinite(value) || !std::isfinite(other->second)) continue;
    x.push_back(value);
    y.push_back(other->second);
  }
  return paired(x, y);
}

double student_two_sided(double t, double degrees) {
  return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!std::isnan(p[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return p[x] < p[y]; });
  std::vector<double> corrected(p.size(), kNan);
  double floor = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    floor = std::max(floor, std::min(1.0, p[order[k]] * double(order.size() - k)));
    corrected[order[k]] = floor;
  }
  return corrected;
}

}  // namespace mrrope::eval
