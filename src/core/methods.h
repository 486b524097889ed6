// SPDX-License-Identifier: Apache-2.0
// What make_plan() needs of the methods: one row each, from a checked request to the numbers.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "mrrope/plan.h"

namespace mrrope {

// A request with every default filled in. Made by make_plan(), valid by construction.
struct Request {
  const Geometry& geometry;
  double scale;
  std::int64_t length;  // at least the trained window
  double beta_fast;
  double beta_slow;
  double power;
  Boundaries boundaries;  // of the betas or as given; high may lie past the last pair
  const Parameters& parameters;
};

struct Method {
  MethodInfo info;
  double beta_fast;   // default
  bool needs_middle;  // low < high <= last pair is a condition, and high is clamped to it
  std::vector<double> (*factors)(const Request&);
  // The temperature where attn_coef is not given; nullptr means 1 + info.attn_coef * ln S.
  double (*attention_scale)(const Request&) = nullptr;
};

const Method& method_row(std::string_view name);

// The real-valued pair index at which a pair would make this many turns in the window.
double pair_with_turns(const Geometry& geometry, double turns);

}  // namespace mrrope
