// SPDX-License-Identifier: Apache-2.0
#include "theory/curves.h"

#include <numbers>
#include <numeric>

#include "base/text.h"

namespace mrrope::theory {

namespace {

constexpr double kTurn = 2 * std::numbers::pi;
constexpr std::int64_t kMostPositions = std::int64_t{1} << 26;  // half a GiB of doubles
constexpr double kMostPosition = 9007199254740992.0;            // 2^53: a double counts so far
constexpr std::int64_t kMostSteps = std::int64_t{1} << 24;
constexpr std::int64_t kBlock = 256;

void check_length(std::int64_t length) {
  refuse_if(length < 1 || length > kMostPositions,
            cat("a curve over ", length, " positions is not possible"),
            cat("give a length from 1 to ", kMostPositions));
}

// B at begin .. begin+size-1: exact angles at the start of a block, then turned step by step. 256
// steps lose at most 256 roundings of a double.
void cosine_block(std::span<const double> theta, std::int64_t begin, std::span<double> out) {
  const std::size_t pairs = theta.size();
  std::vector<double> c(pairs), s(pairs), step_c(pairs), step_s(pairs);
  for (std::size_t j = 0; j < pairs; ++j) {
    c[j] = std::cos(double(begin) * theta[j]);
    s[j] = std::sin(double(begin) * theta[j]);
    step_c[j] = std::cos(theta[j]);
    step_s[j] = std::sin(theta[j]);
  }
  for (double& sum : out) {
    double total = 0;
    for (std::size_t j = 0; j < pairs; ++j) total += c[j];
    sum = total;
    for (std::size_t j = 0; j < pairs; ++j) {
      const double turned = c[j] * step_c[j] - s[j] * step_s[j];
      s[j] = s[j] * step_c[j] + c[j] * step_s[j];
      c[j] = turned;
    }
  }
}

// The least position whose product with theta has a floor of at least k, by the arithmetic of
// digits_of(): a quotient alone may be off by one.
std::int64_t first_position(double theta, double k) {
  const double about = std::ceil(k / theta);
  if (about >= kMostPosition) return std::int64_t(kMostPosition);
  auto m = std::int64_t(about);
  while (m > 0 && std::floor(double(m - 1) * theta) >= k) --m;
  while (std::floor(double(m) * theta) < k) ++m;
  return m;
}

}  // namespace

NumberSystem number_system(const Plan& plan) {
  const std::vector<double>& theta = plan.theta();
  NumberSystem system{mapped(theta, [](double t) { return 1 / t; }), {}};
  for (std::size_t j = 0; j + 1 < theta.size(); ++j)
    system.radix.push_back(theta[j] / theta[j + 1]);
  system.radix.push_back(std::pow(plan.geometry().base, 1.0 / double(theta.size())));
  return system;
}

std::vector<double> digits_of(const Plan& plan, double position) {
  refuse_if(!(position >= 0) || position > kMostPosition,
            cat("position ", position, " is not from 0 to 2^53"), "give a position in tokens");
  std::vector<double> digits = number_system(plan).radix;
  for (std::size_t j = 0; j < digits.size(); ++j) {
    digits[j] = std::fmod(std::floor(position * plan.theta()[j]), digits[j]);
  }
  return digits;
}

double writable_positions(const Plan& plan) {
  const NumberSystem system = number_system(plan);
  return system.weight.back() * system.radix.back();
}

double digit_sum(const Plan& plan, std::span<const double> values) {
  const std::vector<double> weight = number_system(plan).weight;
  return std::inner_product(weight.begin(), weight.end(), values.begin(), 0.0);
}

std::vector<PositionRange> positions_of(const Plan& plan, std::span<const double> values,
                                        double tolerance) {
  const std::vector<double> radices = number_system(plan).radix;
  refuse_if(values.size() != radices.size(),
            cat(values.size(), " digits given, and a position has ", radices.size()),
            cat("give ", radices.size(), " digits, the fastest first"));
  std::vector<std::size_t> order(radices.size());
  for (std::size_t j = 0; j < radices.size(); ++j) {
    order[j] = j;
    refuse_if(!(values[j] >= 0), cat("digit ", j, " is ", values[j]),
              "digits are from 0 to below their radix");
    if (values[j] > radices[j] + tolerance * std::max(1.0, values[j])) return {};
  }
  // From slow to fast: the slowest digit leaves a few long ranges, and each faster one cuts them.
  const std::vector<double>& theta = plan.theta();
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return theta[a] < theta[b]; });
  const double end = std::min(kMostPosition, std::ceil(writable_positions(plan) * (1 - 1e-12)));
  std::vector<PositionRange> ranges = {{0, std::int64_t(end) - 1}};
  std::int64_t steps = 0;
  for (const std::size_t j : order) {
    const double radix = radices[j];
    std::vector<PositionRange> kept;
    for (const PositionRange& r : ranges) {
      const double from = std::floor(double(r.first) * theta[j]);
      const double to = std::floor(double(r.second) * theta[j]);
      for (double k = from; k <= to; ++k) {
        if (++steps > kMostSteps) {
          refuse("too many positions have digits like these", "give more decimals of each digit");
        }
        const double off = std::abs(std::fmod(k, radix) - values[j]);
        // A radix is a rounded number: 0 and a hair below the radix are the same digit.
        if (std::min(off, std::abs(radix - off)) > tolerance * std::max(1.0, values[j])) continue;
        const std::int64_t first = std::max(r.first, first_position(theta[j], k));
        const std::int64_t last = std::min(r.second, first_position(theta[j], k + 1) - 1);
        if (first > last) continue;
        if (!kept.empty() && kept.back().second + 1 == first) {
          kept.back().second = last;
        } else {
          kept.push_back({first, last});
        }
      }
    }
    ranges = std::move(kept);
  }
  return ranges;
}

int first_open_digit(const Plan& plan, std::int64_t length) {
  const auto [weight, radix] = number_system(plan);
  std::size_t j = 0;
  while (j < weight.size() && double(length) >= weight[j] * radix[j]) ++j;
  return int(j);
}

int first_open_pair(const Plan& plan, std::int64_t length) {
  const std::vector<double>& theta = plan.theta();
  const auto open = [&](double t) { return double(length) * t < kTurn; };
  return int(std::find_if(theta.begin(), theta.end(), open) - theta.begin());
}

double range_growth(const Plan& plan) { return plan.factor().back() / plan.factor().front(); }

std::int64_t colliding_positions(const Plan& plan, std::int64_t length) {
  check_length(length);
  // Neighbours share a digit only where both floors are the same: they differ by 0 or 1 (or, where
  // theta is above 1, by more than a radix could hide), and a radix is above 1.
  std::int64_t count = 0;
  const std::vector<double>& theta = plan.theta();
  for (std::int64_t m = 1; m < length; ++m) {
    const bool same = std::all_of(theta.begin(), theta.end(), [&](double t) {
      return std::floor(double(m) * t) == std::floor(double(m - 1) * t);
    });
    count += same ? 1 : 0;
  }
  return count;
}

std::vector<double> position_estimate(std::span<const double> theta, std::int64_t length) {
  check_length(length);
  std::vector<double> out(std::size_t(length), 0.0);
  for (const double t : theta) {
    const double turns = t / kTurn;  // per position
    const double weight = kTurn / t;
    for (std::size_t m = 0; m < out.size(); ++m) {
      const double x = double(m) * turns;
      out[m] += weight * (x - std::floor(x));
    }
  }
  return out;
}

LinearRange linear_range(std::span<const double> estimate, double bound) {
  refuse_if(!(bound > 0) || bound >= 1, cat("a relative error of ", bound, " is not a bound"),
            "give a number between 0 and 1, e.g. 0.05");
  LinearRange range;
  double mm = 0, my = 0, yy = 0;
  for (std::size_t i = 0; i < estimate.size(); ++i) {
    const double m = double(i);
    const double y = estimate[i];
    mm += m * m;
    my += m * y;
    yy += y * y;
    const double error = yy > 0 && mm > 0 ? std::sqrt(std::max(0.0, 1 - my / mm * my / yy)) : 0;
    if (!(error <= bound)) break;
    range = {std::int64_t(i) + 1, mm > 0 ? my / mm : 0, error};
  }
  return range;
}

std::vector<double> cosine_sum(std::span<const double> theta, std::int64_t length) {
  check_length(length);
  std::vector<double> out(std::size_t(length), 0.0);
  for (std::int64_t begin = 0; begin < length; begin += kBlock) {
    const auto size = std::size_t(std::min(kBlock, length - begin));
    cosine_block(theta, begin, std::span(out).subspan(std::size_t(begin), size));
  }
  return out;
}

std::optional<std::int64_t> first_negative(std::span<const double> theta, std::int64_t limit) {
  check_length(limit);
  std::vector<double> block(std::size_t(kBlock), 0.0);
  for (std::int64_t begin = 0; begin < limit; begin += kBlock) {
    const auto size = std::size_t(std::min(kBlock, limit - begin));
    cosine_block(theta, begin, std::span(block).first(size));
    for (std::size_t i = 0; i < size; ++i) {
      if (block[i] < 0) return begin + std::int64_t(i);
    }
  }
  return std::nullopt;
}

Oscillation oscillation_of(std::span<const double> curve) {
  Oscillation o;
  if (curve.empty()) return o;
  double mean = 0;
  for (const double y : curve) mean += y;
  mean /= double(curve.size());
  double square = 0;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    square += (curve[i] - mean) * (curve[i] - mean);
    if (i > 0) o.variation += std::abs(curve[i] - curve[i - 1]);
  }
  o.spread = std::sqrt(square / double(curve.size()));
  return o;
}

std::vector<double> new_angles(const Plan& plan, std::int64_t length) {
  const std::vector<double> trained = trained_theta(plan.geometry());
  std::vector<double> out;
  for (std::size_t j = 0; j < trained.size(); ++j) {
    const double seen = std::min(kTurn, double(plan.geometry().train_length) * trained[j]);
    const double met = std::min(kTurn, double(length) * plan.theta()[j]);
    out.push_back(std::max(0.0, met - seen) / kTurn);
  }
  return out;
}

double pair_score(std::span<const float> query, std::span<const float> key, int first, int last,
                  const Geometry& g) {
  const bool halves = g.pairing == Pairing::halves;
  double sum = 0;
  for (int i = first; i < last; ++i) {
    const auto a = std::size_t(halves ? i : 2 * i);
    const auto b = std::size_t(halves ? i + pair_count(g) : 2 * i + 1);
    sum += double(query[a]) * key[a] + double(query[b]) * key[b];
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
