// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/text.h"
#include "core/methods.h"
#include "export/export.h"

namespace mrrope::exporting {
namespace {

constexpr double kBetaFast = 32;
constexpr int kMostElements = 512;  // the time grows with the square
constexpr std::int64_t kLongest = (std::int64_t{1} << 31) - 1;

// The real-valued index of the pair that makes one turn in this many tokens.
double pair_of(const Geometry& g, double tokens) {
  return plain_pair_with_turns(g.rotary_dim, g.base, tokens, 1);
}

YarnRamp ramp_of(const Geometry& g, std::int64_t original) {
  return yarn_ramp(g.rotary_dim, g.base, double(original), kBetaFast, 1);
}

double error_at(const std::vector<double>& wanted, const YarnRamp& ramp, double scale,
                std::size_t pair) {
  const double part = ramp.at(double(pair));
  const double factor = 1 / (1 - part + part / scale);
  return std::abs(wanted[pair] / factor - 1);
}

double largest_error(const std::vector<double>& wanted, const YarnRamp& ramp, double scale) {
  double largest = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, error_at(wanted, ramp, scale, i));
  }
  return largest;
}

// The best scale for one ramp. The error of a pair falls and then rises with the scale, so the
// largest of them has one minimum; found by golden section over the logarithm.
double best_scale(const std::vector<double>& wanted, const YarnRamp& ramp, double most) {
  constexpr double kGolden = 0.6180339887498949;
  double left = 0;
  double right = std::log(most);
  for (int step = 0; step < 60; ++step) {
    const double a = right - kGolden * (right - left);
    const double b = left + kGolden * (right - left);
    if (largest_error(wanted, ramp, std::exp(a)) <= largest_error(wanted, ramp, std::exp(b))) {
      right = b;
    } else {
      left = a;
    }
  }
  return std::exp((left + right) / 2);
}

// One original length for every possible ramp: engines round its start down and its end up, so each
// pair gives two.
std::vector<std::int64_t> original_lengths(const Geometry& g) {
  std::vector<std::int64_t> out{g.train_length};
  const double width = pair_of(g, kBetaFast) - pair_of(g, 1);
  for (int high = 1; high < g.rotary_dim; ++high) {
    const double step =
        std::ceil(high - 1 - width) + width;  // where the start moves to the next pair
    for (const double end : {(high - 1 + step) / 2, (step + high) / 2}) {
      const double tokens = 2 * std::numbers::pi * std::pow(g.base, 2 * end / g.rotary_dim);
      if (tokens >= 1 && tokens <= double(kLongest)) out.push_back(std::llround(tokens));
    }
  }
  return out;
}

}  // namespace

YarnFit fit_yarn(const Plan& plan) {
  const Geometry& g = plan.geometry();
  unsupported_if(g.rotary_dim > kMostElements,
                 cat("YaRN keys cannot be fitted to ", g.rotary_dim,
                     " rotated elements, only up to ", kMostElements),
                 "check the file with mrrope inspect: heads of models have 512 at most");
  const std::vector<double>& wanted = plan.factor();
  const double most = 4 * *std::ranges::max_element(wanted);
  YarnFit best;
  double least = INFINITY;
  for (const std::int64_t original : original_lengths(g)) {
    const YarnRamp ramp = ramp_of(g, original);
    // The requested scale first, so that a plan that is YaRN gives back its own numbers.
    for (const double scale : {plan.extension().scale, best_scale(wanted, ramp, most)}) {
      const double error = largest_error(wanted, ramp, scale);
      if (error >= least) continue;
      least = error;
      best.scale = scale;
      best.original_length = original;
    }
    if (least == 0) break;
  }
  const YarnRamp ramp = ramp_of(g, best.original_length);
  best.beta_slow = double(g.train_length) / double(best.original_length);
  best.beta_fast = kBetaFast * best.beta_slow;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double error = error_at(wanted, ramp, best.scale, i);
    best.mean_error += error / double(wanted.size());
    if (error <= best.largest_error) continue;
    best.largest_error = error;
    best.worst_pair = int(i);
  }
  return best;
}

}  // namespace mrrope::exporting
