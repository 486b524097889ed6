// SPDX-License-Identifier: Apache-2.0
// The row of a method: everything that mrrope knows about it. Other modules ask the row and never
// compare names, so that a new method is one function and one row in methods.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mrrope/ladder.h"

namespace mrrope {

// A request with every default filled in. Made by make_plan(), valid by construction.
struct Request {
  const Geometry& geometry;
  double scale;
  std::int64_t length;  // at least the trained window
  double beta_fast;
  double beta_slow;
  double power;
  Boundaries boundaries;  // of the betas or as given; high may be past the last pair
  const Parameters& parameters;
};

// What decides how far a plan of this method reaches.
enum class Reach {
  unchanged,  // the model as shipped: any scale is ignored
  scale,      // S
  length,     // the length in use; S is a factor of its own, 1 if not given
  numbers,    // the given list; S may be given for the temperature
};

struct Method {
  MethodInfo info;
  Reach reach;
  // The rule of config.json and GGUF files that computes the same factors: linear, yarn, llama3,
  // longrope, dynamic; "base" for another rope_theta. Empty if engines have no rule for it.
  std::string_view native;
  double beta_fast;   // default
  bool needs_middle;  // low < high <= last pair is a condition, and high is clamped to it
  // p of the power family, for methods that belong to it; nan for `power`, which is given its p.
  std::optional<double> power;
  std::vector<double> (*factors)(const Request&);
  // The temperature where attn_coef is not given; nullptr means 1 + info.attn_coef * ln S.
  double (*attention_scale)(const Request&) = nullptr;
};

// Upper and lower case are equal. Throws Error (usage) that lists the known names.
const Method& method_row(std::string_view name);

// The method that computes what a file declares under this rule, or nullptr.
const Method* method_of_rule(std::string_view native);

// "pro" names a static plan, "elastic:pro" a ladder of such plans, "far:pro" a ladder whose plans
// apply to far keys alone. Names that are not methods (rows of tables, such as "vendor") are
// returned unchanged.
enum class Growth { none, elastic, far };
struct MethodName {
  std::string method;
  Growth growth = Growth::none;
  bool grows() const noexcept { return growth != Growth::none; }
  bool has_near_part() const noexcept { return growth == Growth::far; }
};
Growth growth_of(const Ladder& ladder) noexcept;
// Whether the factors of a method follow from a scale, as those of far keys must.
bool has_far_form(std::string_view method);
MethodName split_method_name(std::string_view name);
std::string join_method_name(std::string_view method, Growth growth);

// YaRN's temperature as engines apply it by themselves: 1 + 0.1 c ln S; 1 where S is at most 1.
double yarn_temperature(double scale, double coefficient = 1);

// The real-valued pair index at which a pair would make this many turns in the window.
double pair_with_turns(const Geometry& geometry, double turns);

}  // namespace mrrope
