// SPDX-License-Identifier: Apache-2.0
#include "mrrope/plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/text.h"
#include "core/methods.h"
#include "mrrope/geometry.h"
#include "mrrope/version.h"

namespace mrrope {
namespace {

// Lambdas closer than this are equal: some thousand roundings of a double.
constexpr double kShapeTolerance = 1e-12;

Boundaries boundaries_of(const Method& m, const Geometry& g, const Parameters& p, double fast,
                         double slow) {
  if (!(fast > slow)) {
    refuse(cat("beta_fast ", fast, " is not above beta_slow ", slow), "the defaults are 32 and 1");
  }
  // The engines clamp to rotary_dim - 1 elements, not to the last pair: a ramp may end past it.
  const int end = m.needs_middle ? pair_count(g) - 1 : g.rotary_dim - 1;
  const double limit = g.rotary_dim;
  const double from_fast = std::floor(std::clamp(pair_with_turns(g, fast), -limit, limit));
  const double from_slow = std::ceil(std::clamp(pair_with_turns(g, slow), -limit, limit));
  Boundaries b;
  b.low = int(p.low.value_or(std::max(from_fast, 0.0)));
  b.high = int(p.high.value_or(std::min(from_slow, double(end))));
  if (!m.info.takes_borders) return b;  // shown, not used

  if (b.high > end) {
    refuse(cat("high ", b.high, " is greater than ", end), cat("give a high from 1 to ", end));
  }
  const std::string window =
      cat("window ", g.train_length, ", base ", g.base, ", rotary_dim ", g.rotary_dim);
  if (m.needs_middle && b.low >= b.high && (p.low || p.high)) {
    refuse(cat("there is no middle to extend from pair ", b.low, " to pair ", b.high, " (", window,
               ")"),
           b.high > 0 ? cat("give low=", b.high - 1, " or less, or a larger high")
                      : "give a larger high");
  }
  if (m.needs_middle && b.low >= b.high) {
    refuse(cat("there is no middle to extend: the first pair that makes at most ", slow,
               " turns in the window is ", std::max(b.high, 0), ", the last that makes ", fast,
               " is ", b.low, " (", window, ")"),
           "set the boundaries with low and high, or use ntk or pi");
  }
  if (b.low > b.high) {
    refuse(cat("the ramp from pair ", b.low, " to ", b.high,
               " runs backwards, and engines disagree about what that means (", window, ")"),
           "set the boundaries with low and high, or use ntk or pi");
  }
  return b;
}

// Far beyond any model, and small enough that nothing downstream overflows.
constexpr int kMaxRotaryDim = 65536;
constexpr double kMaxBase = 1e38;
constexpr std::int64_t kMaxLength = std::int64_t{1} << 40;

void check_own_list(const Geometry& g, const char* name, const std::vector<double>& list) {
  if (!list.empty() && list.size() != std::size_t(g.rotary_dim / 2)) {
    refuse(cat("the model's own ", name, " list has ", list.size(), " entries, but ",
               g.rotary_dim / 2, " pairs rotate"),
           "give one factor per pair");
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!(list[i] > 0) || !std::isfinite(list[i])) {
      refuse(cat("the model's own ", name, " of pair ", i, " is ", list[i]),
             "factors are positive numbers");
    }
  }
}

}  // namespace

Plan make_plan(const Geometry& geometry, const Extension& extension) {
  validate(geometry);
  const Method& m = method_row(extension.method);
  const Parameters& p = extension.parameters;
  if (!(extension.scale >= 1) || extension.scale > 1e9) {
    refuse(cat("scale ", extension.scale,
               " is not a number from 1 to 1e9: a plan lengthens a context"),
           "scale is wanted length / trained window, e.g. 8");
  }
  if (extension.length < 0) refuse(cat("length ", extension.length, " is negative"), "give tokens");
  check_method(MethodSpec{.name = extension.method, .parameters = p});
  refuse_if(p.headroom.has_value(), "a plan has no headroom of its own",
            "multiply the scale by it, or use make_ladder()");

  const double fast = p.beta_fast.value_or(m.beta_fast);
  const double slow = p.beta_slow.value_or(1);
  const Request request{.geometry = geometry,
                        .scale = extension.scale,
                        .length = std::max(extension.length, geometry.train_length),
                        .beta_fast = fast,
                        .beta_slow = slow,
                        .boundaries = boundaries_of(m, geometry, p, fast, slow),
                        .parameters = p};

  Plan plan;
  plan.geometry_ = geometry;
  plan.extension_ = extension;
  plan.extension_.method = m.info.name;  // whatever case it was typed in
  plan.boundaries_ = request.boundaries;
  plan.factor_ = m.factors(request);
  plan.theta_ = trained_theta(geometry);
  for (std::size_t i = 0; i < plan.theta_.size(); ++i) plan.theta_[i] /= plan.factor_[i];
  plan.attention_scale_ =
      m.attention_scale && !p.attn_coef
          ? m.attention_scale(request)
          : 1 + p.attn_coef.value_or(m.info.attn_coef) * std::log(request.scale);
  if (!(plan.attention_scale_ > 0) || !std::isfinite(plan.attention_scale_)) {
    refuse(cat("the attention scale comes out as ", plan.attention_scale_,
               ", which is not a positive number"),
           "set the temperature with attn_coef: 0.1 is YaRN's, 0 means none");
  }
  return plan;
}

std::vector<double> Plan::lambda() const {
  std::vector<double> out(factor_.size() - 1);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = factor_[i + 1] / factor_[i];
  return out;
}

Shape Plan::shape() const {
  const std::vector<double> all = lambda();
  const int end = std::min(boundaries_.high - 1, int(all.size()));
  bool up = false;
  bool down = false;
  for (int i = boundaries_.low + 2; i < end; ++i) {
    const double ratio = all[i] / all[i - 1];
    up |= ratio > 1 + kShapeTolerance;
    down |= ratio < 1 - kShapeTolerance;
  }
  if (up && down) return Shape::mixed;
  return up ? Shape::progressive : down ? Shape::regressive : Shape::uniform;
}

bool Plan::same_numbers(const Plan& other) const {
  return theta_ == other.theta_ && factor_ == other.factor_ &&
         attention_scale_ == other.attention_scale_ &&
         geometry_.pairing == other.geometry_.pairing &&
         geometry_.trained_attention_scale == other.geometry_.trained_attention_scale;
}

bool is_identity(const Plan& plan) {
  return plan.attention_scale() == 1 &&
         std::all_of(plan.factor().begin(), plan.factor().end(), [](double f) { return f == 1; });
}

const char* to_string(Shape shape) noexcept {
  constexpr const char* kNames[] = {"regressive", "uniform", "progressive", "mixed"};
  return kNames[std::size_t(shape)];
}

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
  check_own_list(g, "factor", g.trained_factor);
  check_own_list(g, "long factor", g.long_factor);
  if (g.long_length < 0 || g.long_length > kMaxLength ||
      (g.long_length == 0) != g.long_factor.empty()) {
    refuse(cat("the model's own long factors reach ", g.long_length, " tokens"),
           "give long_factor and long_length, its tokens, or neither");
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

const char* version() noexcept { return MRROPE_VERSION; }

}  // namespace mrrope
