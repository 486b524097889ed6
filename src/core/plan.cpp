// SPDX-License-Identifier: Apache-2.0
#include "mrrope/plan.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "core/methods.h"
#include "mrrope/error.h"

namespace mrrope {

namespace {

constexpr double kMaxScale = 1e9;
constexpr double kMaxPower = 16;  // 32768^16 is still a finite double, also summed

// Lambdas closer than this are equal: some thousand roundings of a double.
constexpr double kShapeTolerance = 1e-12;

[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  throw Error(ErrorKind::usage, message, hint);
}

void check_scale(const Extension& e) {
  if (!(e.scale >= 1) || e.scale > kMaxScale) {
    refuse(cat("scale ", e.scale, " is not a number from 1 to 1e9: a plan lengthens a context"),
           "scale is wanted length / trained window, e.g. --scale 8, or give --ctx");
  }
  if (e.length < 0) refuse(cat("length ", e.length, " is negative"), "give --ctx in tokens");
}

// A parameter that the method would ignore is refused.
void check_parameters(const Method& m, const Parameters& p) {
  const std::string name(m.info.name);
  const auto unread = [&](const char* flag) {
    refuse(cat("method ", name, " does not use ", flag), cat("remove ", flag));
  };
  if (!m.info.takes_betas) {
    if (p.beta_fast) unread("--beta-fast");
    if (p.beta_slow) unread("--beta-slow");
  }
  if (!m.info.takes_borders) {
    if (p.low) unread("--low");
    if (p.high) unread("--high");
  }
  if (!m.info.takes_power && p.power) unread("--power");
  if (!m.info.takes_lists && !p.factors.empty()) unread("--factors");
  if (!m.info.takes_lists && !p.lambdas.empty()) unread("--lambdas");

  if (p.beta_fast && (!(*p.beta_fast > 0) || !std::isfinite(*p.beta_fast))) {
    refuse(cat("beta_fast ", *p.beta_fast, " is not a positive number"), "32 is usual");
  }
  if (p.beta_slow && (!(*p.beta_slow > 0) || !std::isfinite(*p.beta_slow))) {
    refuse(cat("beta_slow ", *p.beta_slow, " is not a positive number"), "1 is usual");
  }
  if (p.power && !(std::abs(*p.power) <= kMaxPower)) {
    refuse(cat("power ", *p.power, " is not between -16 and 16"), "0 is uni, 1 is pro");
  }
  if (p.attn_coef && !std::isfinite(*p.attn_coef)) {
    refuse(cat("attn_coef ", *p.attn_coef, " is not a number"), "0.1 is usual, 0 means none");
  }
}

Boundaries boundaries_of(const Method& m, const Geometry& g, const Parameters& p, double fast,
                         double slow) {
  if (!(fast > slow)) {
    refuse(cat("beta_fast ", fast, " is not above beta_slow ", slow),
           "beta_fast counts the turns of fast pairs: 32 against 1 is usual");
  }
  // The engines clamp to rotary_dim - 1 elements, not to the last pair: a ramp may end past it.
  const int end = m.needs_middle ? pair_count(g) - 1 : g.rotary_dim - 1;
  const double limit = g.rotary_dim;
  const double from_fast = std::floor(std::clamp(pair_with_turns(g, fast), -limit, limit));
  const double from_slow = std::ceil(std::clamp(pair_with_turns(g, slow), -limit, limit));
  Boundaries b;
  b.low = p.low.value_or(std::max(int(from_fast), 0));
  b.high = p.high.value_or(std::min(int(from_slow), end));
  if (!m.info.takes_borders) return b;  // shown, not used

  if (b.low < 0) refuse(cat("low ", b.low, " is negative"), "pairs are counted from 0");
  if (b.high > end) {
    refuse(cat("high ", b.high, " is greater than ", end), cat("give --high from 1 to ", end));
  }
  const std::string window =
      cat("window ", g.train_length, ", base ", g.base, ", rotary_dim ", g.rotary_dim);
  if (m.needs_middle && b.low >= b.high && (p.low || p.high)) {
    refuse(cat("there is no middle to extend from pair ", b.low, " to pair ", b.high, " (", window,
               ")"),
           b.high > 0 ? cat("give --low ", b.high - 1, " or less, or a larger --high")
                      : "give a larger --high");
  }
  if (m.needs_middle && b.low >= b.high) {
    refuse(cat("there is no middle to extend: the first pair that makes at most ", slow,
               " turns in the window is ", std::max(b.high, 0), ", the last that makes ", fast,
               " is ", b.low, " (", window, ")"),
           "set the boundaries with --low and --high, or use --method ntk or pi");
  }
  if (b.low > b.high) {
    refuse(cat("the ramp from pair ", b.low, " to ", b.high,
               " runs backwards, and engines disagree about what that means (", window, ")"),
           "set the boundaries with --low and --high, or use --method ntk or pi");
  }
  return b;
}

}  // namespace

Plan make_plan(const Geometry& geometry, const Extension& extension) {
  validate(geometry);
  const Method& m = method_row(extension.method);
  const Parameters& p = extension.parameters;
  check_scale(extension);
  check_parameters(m, p);

  const double fast = p.beta_fast.value_or(m.beta_fast);
  const double slow = p.beta_slow.value_or(1);
  const Request request{.geometry = geometry,
                        .scale = extension.scale,
                        .length = std::max(extension.length, geometry.train_length),
                        .beta_fast = fast,
                        .beta_slow = slow,
                        .power = p.power.value_or(1),
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
           "set the temperature with --attn-coef: 0.1 is usual, 0 means none");
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

const char* to_string(Shape shape) noexcept {
  switch (shape) {
    case Shape::regressive:
      return "regressive";
    case Shape::uniform:
      return "uniform";
    case Shape::progressive:
      return "progressive";
    case Shape::mixed:
      return "mixed";
  }
  return "mixed";
}

}  // namespace mrrope
