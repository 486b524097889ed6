// SPDX-License-Identifier: Apache-2.0
#include "mrrope/geometry.h"

#include <cmath>
#include <numbers>

#include "base/text.h"

namespace mrrope {

namespace {

// Far beyond any model, and small enough that nothing downstream overflows.
constexpr int kMaxRotaryDim = 65536;
constexpr double kMaxBase = 1e38;
constexpr std::int64_t kMaxLength = std::int64_t{1} << 40;

}  // namespace

const char* to_string(Pairing pairing) noexcept {
  return pairing == Pairing::halves ? "halves" : "interleaved";
}

void validate(const Geometry& g) {
  if (g.rotary_dim < 4 || g.rotary_dim > kMaxRotaryDim || g.rotary_dim % 2 != 0) {
    refuse(cat("rotary_dim ", g.rotary_dim, " is not an even number from 4 to ", kMaxRotaryDim),
           "give the rotated elements of one head, e.g. --rotary-dim 128");
  }
  if (!(g.base > 1) || g.base > kMaxBase) {
    refuse(cat("rope base ", g.base, " is not a number above 1 and up to 1e38"),
           "give the base the model was trained with, e.g. --rope-freq-base 10000");
  }
  if (g.train_length < 1 || g.train_length > kMaxLength) {
    refuse(cat("trained window ", g.train_length, " is not between 1 and 2^40 tokens"),
           "give the length the model was trained for, e.g. --train-ctx 4096");
  }
  if (!g.trained_factor.empty() && g.trained_factor.size() != std::size_t(g.rotary_dim / 2)) {
    refuse(cat("the model's own factor list has ", g.trained_factor.size(), " entries, but ",
               g.rotary_dim / 2, " pairs rotate"),
           "give one factor per pair");
  }
  for (std::size_t i = 0; i < g.trained_factor.size(); ++i) {
    const double f = g.trained_factor[i];
    if (!(f > 0) || !std::isfinite(f)) {
      refuse(cat("the model's own factor of pair ", i, " is ", f), "factors are positive numbers");
    }
  }
  if (!(g.trained_attention_scale > 0) || !std::isfinite(g.trained_attention_scale)) {
    refuse(cat("the model's own attention scale is ", g.trained_attention_scale),
           "it is a positive number, 1 for most models");
  }
}

std::string describe(const Geometry& g) {
  std::string text = cat("rotary_dim ", g.rotary_dim, ", base ", g.base, ", window ",
                         g.train_length, ", pairing ", to_string(g.pairing));
  if (!g.trained_factor.empty()) text += ", on top of the vendor's own factors";
  return text;
}

int pair_count(const Geometry& g) noexcept { return g.rotary_dim / 2; }

std::vector<double> trained_theta(const Geometry& g) {
  std::vector<double> theta(pair_count(g));
  for (std::size_t i = 0; i < theta.size(); ++i) {
    theta[i] = std::pow(g.base, -2.0 * double(i) / g.rotary_dim);
    if (!g.trained_factor.empty()) theta[i] /= g.trained_factor[i];
  }
  return theta;
}

std::vector<double> rotations_in_window(const Geometry& g) {
  std::vector<double> turns = trained_theta(g);
  for (double& t : turns) t *= double(g.train_length) / (2 * std::numbers::pi);
  return turns;
}

}  // namespace mrrope
