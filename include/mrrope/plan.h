// SPDX-License-Identifier: Apache-2.0
// Plan: the numbers of one extension of one model. Kernels, engines and exporters take a Plan and
// never ask which method made it.
#pragma once

#include <utility>
#include <vector>

#include "mrrope/geometry.h"
#include "mrrope/method.h"

namespace mrrope {

// 0-based pairs: [0, low) is unchanged, [low, high) is the middle, [high, ...) is scaled in full.
struct Boundaries {
  int low = 0;
  int high = 0;
  bool operator==(const Boundaries&) const = default;
};

// How the radix multipliers change from digit to digit inside the middle.
enum class Shape { regressive, uniform, progressive, mixed };

const char* to_string(Shape shape) noexcept;

class Plan {
 public:
  const Geometry& geometry() const noexcept { return geometry_; }
  const Extension& extension() const noexcept { return extension_; }

  // Radians per position, one per pair: trained theta / factor.
  const std::vector<double>& theta() const& noexcept { return theta_; }
  std::vector<double> theta() && { return std::move(theta_); }
  // What divides the trained theta, one per pair: the cumulative product of the lambdas.
  const std::vector<double>& factor() const& noexcept { return factor_; }
  std::vector<double> factor() && { return std::move(factor_); }
  // lambda[i] = factor[i + 1] / factor[i]; one fewer than pairs.
  std::vector<double> lambda() const;
  // Multiplies cos and sin, on top of the geometry's trained_attention_scale.
  double attention_scale() const noexcept { return attention_scale_; }
  Boundaries boundaries() const noexcept { return boundaries_; }
  // Judged by the lambdas between pairs strictly inside (low, high).
  Shape shape() const;

  // The same numbers, whatever request they came from.
  bool same_numbers(const Plan& other) const;

 private:
  friend Plan make_plan(const Geometry&, const Extension&);
  Plan() = default;

  Geometry geometry_;
  Extension extension_;
  std::vector<double> theta_;
  std::vector<double> factor_;
  double attention_scale_ = 1;
  Boundaries boundaries_;
};

// The only way to make a Plan. Throws Error (usage) when the request cannot be met for this
// geometry.
Plan make_plan(const Geometry& geometry, const Extension& extension);

}  // namespace mrrope
