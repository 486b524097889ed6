// SPDX-License-Identifier: Apache-2.0
// The row of a method: everything that mrrope knows about it. Other modules ask the row and never
// compare names, so that a new method is one function and one row in methods.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
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
  Boundaries boundaries;  // of the betas or as given; high may be past the last pair
  const Parameters& parameters;
};

// What decides how far a plan of this method reaches.
enum class Reach {
  unchanged,  // the unmodified model: any scale is ignored
  scale,      // S
  length,     // the length in use; S is a factor of its own, 1 if not given
  numbers,    // the given list; S may be given for the temperature
  file,       // the model's own long list, wherever S is above 1
};

struct Method {
  MethodInfo info = {};
  Reach reach = Reach::scale;
  // The rule of config.json and GGUF files that computes the same factors: linear, yarn, llama3,
  // longrope, dynamic; "base" for another rope_theta. Empty if engines have no rule for it.
  std::string_view native = {};
  double beta_fast = 32;      // default
  bool needs_middle = false;  // low < high <= last pair is a condition, and high is clamped to it
  // p of the power family, for methods that belong to it; nan for `power`, which is given its p.
  std::optional<double> power = std::nullopt;
  std::vector<double> (*factors)(const Request&) = nullptr;
  // The temperature where attn_coef is not given; nullptr means 1 + info.attn_coef * ln S.
  double (*attention_scale)(const Request&) = nullptr;
};

// Adds a row, before anything else asks for one.
void register_method(const Method& method);
void register_parameter(const ParameterInfo& parameter);

// Upper and lower case are equal. Throws Error (usage) that lists the known names.
const Method& method_row(std::string_view name);

// The method that computes what a file declares under this rule, or nullptr.
const Method* method_of_rule(std::string_view native);

// Whether the model's own long list is for this scale: above 1, as far as it was made for.
bool long_list_reaches(const Geometry& geometry, double scale);

// Whether the factors of a method follow from a scale, as those of far keys must.
bool has_far_form(std::string_view method);

// "auto" is what mrrope does where no method is named: see resolve_auto().
inline constexpr std::string_view kAuto = "auto";
bool is_auto(std::string_view name);
// Of the name of a row in a table, which need not be a method: growth of "far:pi(near=L/32)", and
// its bare name, "pi".
Growth growth_of(std::string_view row) noexcept;
std::string bare_name(std::string_view row);
// "pro", "elastic:pro", "far:pro".
std::string method_name(std::string_view name, Growth growth);

// YaRN's temperature as engines apply it: 1 + 0.1 c ln S; 1 where S is at most 1.
double yarn_temperature(double scale, double coefficient = 1);

// Whether the plan leaves the model unchanged.
bool is_identity(const Plan& plan);

// The real-valued pair index at which a pair would make this many turns in the window.
double pair_with_turns(const Geometry& geometry, double turns);

// The real-valued index at which a pair of plain RoPE makes this many turns in `length` tokens.
inline double plain_pair_with_turns(int rotary_dim, double base, double length, double turns) {
  return rotary_dim * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
}

// YaRN's ramp over pairs, as engines compute it: 0 up to `low`, 1 from `high` on.
struct YarnRamp {
  double low = 0;
  double high = 0;
  double at(double pair) const {
    return std::clamp((pair - low) / (high > low ? high - low : 0.001), 0.0, 1.0);
  }
};
inline YarnRamp yarn_ramp(int rotary_dim, double base, double length, double beta_fast,
                          double beta_slow, bool truncate = true) {
  double low = plain_pair_with_turns(rotary_dim, base, length, beta_fast);
  double high = plain_pair_with_turns(rotary_dim, base, length, beta_slow);
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  return {std::max(0.0, low), std::min(rotary_dim - 1.0, high)};
}

// The rung step of elastic:NAME where none is given.
inline constexpr double kRungStep = 1.19;
// The rung step that reaches so many windows in one rung.
inline double one_rung(double windows) { return std::max(2.0, windows); }
// Each place of the border is a rung with a plan of its own.
inline constexpr std::int64_t kMaxBorders = 4096;

// What far:NAME does where a parameter is not given, at every length.
// docs/design/growing-contexts.md has the evidence.
inline constexpr double kFarRungStep = 1.42;  // a little more than the root of 2
inline constexpr double kFarHeadroom = 1.25;
NearPart default_near_part(std::int64_t window, std::int64_t longest,
                           std::optional<std::int64_t> length = std::nullopt);
double default_sharpen(std::int64_t window);

// `auto` is a function of the geometry and the length alone: none inside the window, beyond it
// elastic:vendor as far as a list of the model's own reaches, else far:pi, as for an auto with
// parameters. Other methods come back unchanged.
MethodSpec resolve_auto(const Geometry& geometry, MethodSpec method, std::int64_t ctx,
                        std::optional<double> scale = std::nullopt);

// Throws Error (usage) where ctx and scale both say how far the method reaches; only methods that
// follow the length use both.
void check_reach(const MethodSpec& method, std::int64_t ctx, std::optional<double> scale);

// The static method that takes the place of `auto` where a context cannot grow: vendor where the
// model has a list of its own, else pro, and ntk for a geometry that pro cannot extend.
std::string static_method(const Geometry& geometry, double scale);

// elastic:pro with one rung beyond the window, for the whole length: the unmodified model, then
// static pro. Headroom and rung step are those of `asked`.
MethodSpec in_one_rung(const Geometry& geometry, const MethodSpec& asked, std::int64_t ctx);

}  // namespace mrrope
