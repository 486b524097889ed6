// SPDX-License-Identifier: Apache-2.0
// Every method as one pure function and one row of the table. CONTRIBUTING.md says how to add one.
#include "core/methods.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "base/words.h"
#include "mrrope/error.h"

namespace mrrope {
namespace {

std::vector<double> constant(const Request& r, double value) {
  return std::vector<double>(pair_count(r.geometry), value);
}

std::vector<double> none(const Request& r) { return constant(r, 1); }
std::vector<double> pi(const Request& r) { return constant(r, r.scale); }

// One radix multiplier for every digit, so that the last factor is `scale`.
std::vector<double> geometric(const Request& r, double scale) {
  std::vector<double> f = constant(r, 1);
  const double last = double(f.size() - 1);
  for (std::size_t i = 0; i < f.size(); ++i) f[i] = std::pow(scale, double(i) / last);
  return f;
}

std::vector<double> ntk(const Request& r) { return geometric(r, r.scale); }

// transformers' rule: the base grows with the length in use, by scale * length / window - (scale -
// 1) to the power d / (d - 2), which is a geometric sequence of factors.
std::vector<double> dynamic_ntk(const Request& r) {
  const double ratio = double(r.length) / double(r.geometry.train_length);
  return geometric(r, r.scale * ratio - (r.scale - 1));
}

// keep = 1: theta stays; keep = 0: theta is divided by the scale; linear in theta between.
double blend(double keep, double scale) { return 1 / (keep + (1 - keep) / scale); }

// The ramp runs over the pair index, as transformers, llama.cpp and vLLM compute it. All three
// widen a ramp of no width to 0.001.
std::vector<double> yarn(const Request& r) {
  std::vector<double> f = constant(r, 1);
  const YarnRamp ramp{double(r.boundaries.low), double(r.boundaries.high)};
  for (std::size_t i = 0; i < f.size(); ++i) f[i] = blend(1 - ramp.at(double(i)), r.scale);
  return f;
}

// The ramp runs over the turns a pair makes in the window, as the papers print it. Llama 3.1's rule
// is the same ramp between 1 and 4 turns.
std::vector<double> by_rotations(const Request& r) {
  std::vector<double> f = rotations_in_window(r.geometry);
  for (double& value : f) {
    const double keep = (value - r.beta_slow) / (r.beta_fast - r.beta_slow);
    value = blend(std::clamp(keep, 0.0, 1.0), r.scale);
  }
  return f;
}

// lambda = S^eps_k with eps_k ~ k^p for the k-th digit of the middle. The exponents are summed and
// then divided once, so that p = 0 and p = 1 are Uni and Pro to the last bit.
std::vector<double> power_sum(const Request& r, double p) {
  std::vector<double> f = constant(r, 1);
  const auto [low, high] = r.boundaries;
  std::vector<double> sum(high - low + 1, 0.0);
  for (std::size_t k = 1; k < sum.size(); ++k) sum[k] = sum[k - 1] + std::pow(double(k), p);
  for (std::size_t i = 0; i < f.size(); ++i) {
    const int k = std::clamp(int(i) - low, 0, high - low);
    f[i] = std::pow(r.scale, sum[k] / sum.back());
  }
  return f;
}

// Pro's exponents in reverse order: eps_k ~ n + 1 - k, so lambda falls over the middle as Pro's
// rises.
std::vector<double> regressive(const Request& r) {
  std::vector<double> f = constant(r, 1);
  const auto [low, high] = r.boundaries;
  const double n = high - low;
  for (std::size_t i = 0; i < f.size(); ++i) {
    const double k = std::clamp(double(i) - low, 0.0, n);
    f[i] = std::pow(r.scale, k * (2 * n + 1 - k) / (n * (n + 1)));
  }
  return f;
}

std::vector<double> uni(const Request& r) { return power_sum(r, 0); }
std::vector<double> pro(const Request& r) { return power_sum(r, 1); }
std::vector<double> power(const Request& r) { return power_sum(r, r.parameters.power.value_or(1)); }

void check_list(const std::vector<double>& list, const char* name, std::size_t wanted) {
  refuse_if(list.size() != wanted,
            cat("the ", name, " list has ", list.size(), " entries where ", wanted, " are needed"),
            cat("this geometry takes ", wanted, " ", name, "s"));
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!(list[i] > 0) || !std::isfinite(list[i])) {
      refuse(cat(name, " ", i, " is ", list[i]), "every entry is a positive number");
    }
  }
}

std::vector<double> given_factors(const Request& r) {
  refuse_if(!r.parameters.lambdas.empty(), "longrope takes factors, not lambdas",
            "give factors, or use custom");
  check_list(r.parameters.factors, "factor", pair_count(r.geometry));
  return r.parameters.factors;
}

std::vector<double> custom(const Request& r) {
  const Parameters& p = r.parameters;
  refuse_if(p.factors.empty() == p.lambdas.empty(),
            "custom takes either a factor list or a lambda list",
            "give custom(factors=[F0,F1,...]) or custom(lambdas=[L0,L1,...])");
  if (!p.factors.empty()) return given_factors(r);
  check_list(p.lambdas, "lambda", pair_count(r.geometry) - 1);
  std::vector<double> f = constant(r, 1);
  for (std::size_t i = 1; i < f.size(); ++i) f[i] = f[i - 1] * p.lambdas[i - 1];
  return f;
}

// The list that LongRoPE's files hold for texts beyond the window; inside it the other one is part
// of the geometry. Their temperature is the same on both sides, in transformers and in llama.cpp.
std::vector<double> vendor(const Request& r) {
  const Geometry& g = r.geometry;
  refuse_if(g.long_length <= g.train_length,
            cat("vendor needs a model file with two lists of factors (LongRoPE: Phi-3, Phi-4) and "
                "the window of the first; this one has no list for texts beyond its window of ",
                g.train_length, " tokens"),
            "give --method auto, or elastic:pro");
  std::vector<double> f = constant(r, 1);
  if (r.scale <= 1) return f;
  refuse_if(!long_list_reaches(g, r.scale),
            cat("the model's own long list was made for ", g.long_length, " tokens, not for ",
                significant(r.scale * double(g.train_length), 9)),
            cat("give --ctx ", g.long_length, " or less, or --method far:pi"));
  for (std::size_t i = 0; i < f.size(); ++i) {
    f[i] = g.long_factor[i] / (g.trained_factor.empty() ? 1 : g.trained_factor[i]);
  }
  return f;
}

// LongRoPE's temperature.
double longrope_temperature(const Request& r) {
  if (r.scale <= 1) return 1;
  return std::sqrt(1 + std::log(r.scale) / std::log(double(r.geometry.train_length)));
}

// clang-format off
constexpr auto kNotInFamily = std::nullopt;
constexpr double kGivenPower = std::numeric_limits<double>::quiet_NaN();

//                                                           reads                                                              needs
//  name              title                        attn_coef  betas  borders lists own       reach             native    beta_fast middle power
constexpr Method kMethods[] = {
  {{"none",           "the unmodified model",        0,   false, false, false, ""},      Reach::unchanged, "",         32, false, kNotInFamily, none},
  {{"pi",             "Position Interpolation",      0,   false, false, false, ""},      Reach::scale,     "linear",   32, false, kNotInFamily, pi},
  {{"ntk",            "NTK-aware interpolation",     0,   false, false, false, ""},      Reach::scale,     "base",     32, false, kNotInFamily, ntk},
  {{"dynamic-ntk",    "NTK that follows the length", 0,   false, false, false, ""},      Reach::length,    "dynamic",  32, false, kNotInFamily, dynamic_ntk},
  {{"yarn",           "YaRN, ramp over pairs",       0.1, true,  true,  false, ""},      Reach::scale,     "yarn",     32, false, kNotInFamily, yarn},
  {{"yarn-rotations", "YaRN, ramp over turns",       0.1, true,  false, false, ""},      Reach::scale,     "",         32, false, kNotInFamily, by_rotations},
  {{"llama3",         "Llama 3.1's rule",            0,   true,  false, false, ""},      Reach::scale,     "llama3",   4,  false, kNotInFamily, by_rotations},
  {{"longrope",       "LongRoPE, list given",        0,   false, false, true,  ""},      Reach::scale,     "longrope", 32, false, kNotInFamily, given_factors, longrope_temperature},
  {{"vendor",         "the file's own long list",    0,   false, false, false, ""},      Reach::file,      "",         32, false, kNotInFamily, vendor},
  {{"regressive",     "arithmetic regressive",       0.1, true,  true,  false, ""},      Reach::scale,     "",         32, true,  kNotInFamily, regressive},
  {{"uni",            "MrRoPE-Uni",                  0.1, true,  true,  false, ""},      Reach::scale,     "",         32, true,  0,            uni},
  {{"pro",            "MrRoPE-Pro",                  0.1, true,  true,  false, ""},      Reach::scale,     "",         32, true,  1,            pro},
  {{"power",          "power family",                0.1, true,  true,  false, "power"}, Reach::scale,     "",         32, true,  kGivenPower,  power},
  {{"custom",         "your own numbers",            0,   false, false, true,  ""},      Reach::numbers,   "",         32, false, kNotInFamily, custom},
};
// clang-format on

std::vector<Method>& rows() {
  static std::vector<Method> all(std::begin(kMethods), std::end(kMethods));
  return all;
}

}  // namespace

std::span<const MethodInfo> methods() {
  static const auto infos = mapped(rows(), &Method::info);
  return infos;
}

void register_method(const Method& method) { rows().push_back(method); }

const Method& method_row(std::string_view name) {
  const std::string wanted = lower_case(name);
  std::vector<std::string> names;
  for (const Method& m : rows()) {
    if (m.info.name == wanted) return m;
    names.emplace_back(m.info.name);
  }
  refuse(cat("there is no method '", name, "'"),
         wanted == "self-extend"
             ? "give far:pi, which equals it within 0.001 wherever both were measured"
             : cat(did_you_mean(name, names), "the methods are ", joined(names, ", ")));
}

const MethodInfo& find_method(std::string_view name) { return method_row(name).info; }

const Method* method_of_rule(std::string_view native) {
  for (const Method& m : rows()) {
    if (!native.empty() && m.native == native) return &m;
  }
  return nullptr;
}

bool long_list_reaches(const Geometry& g, double scale) {
  return scale > 1 && scale * double(g.train_length) < double(g.long_length) + 0.5;
}

bool has_far_form(std::string_view method) {
  const Method& row = method_row(method);
  return row.reach == Reach::scale && !row.info.takes_lists;
}

double yarn_temperature(double scale, double coefficient) {
  return scale <= 1 ? 1 : 1 + 0.1 * coefficient * std::log(scale);
}

double pair_with_turns(const Geometry& g, double turns) {
  if (g.trained_factor.empty()) {
    return plain_pair_with_turns(g.rotary_dim, g.base, double(g.train_length), turns);
  }
  // ln(turns) falls by this much from pair to pair of plain RoPE.
  const double slope = 2 * std::log(g.base) / g.rotary_dim;
  // With trained factors: straight lines between the pairs in ln(turns), plain RoPE beyond them.
  const std::vector<double> r = rotations_in_window(g);
  const double wanted = std::log(turns);
  if (std::log(r.front()) <= wanted) return (std::log(r.front()) - wanted) / slope;
  for (std::size_t i = 1; i < r.size(); ++i) {
    const double above = std::log(r[i - 1]);
    const double here = std::log(r[i]);
    if (here <= wanted) return double(i) - (wanted - here) / (above - here);
  }
  return double(r.size() - 1) + (std::log(r.back()) - wanted) / slope;
}

double default_sharpen(std::int64_t window) {
  // 0.05 for a window of 1024 tokens, which gains little, 0.2 from 8192 on.
  return 0.05 * std::clamp(std::log2(double(window) / 512), 1.0, 4.0);
}

NearPart default_near_part(std::int64_t window, std::int64_t longest,
                           std::optional<std::int64_t> length) {
  // The longer the near part, the more far keys are drawn together: 1024 tokens, unless the window
  // is so short or so long that they would be more than 1/4 or less than 1/32 of it.
  const std::int64_t near = length.value_or(
      std::max({std::int64_t(1), window / 32, std::min<std::int64_t>(1024, window / 4)}));
  // So far that the border would move too often, it moves by more at a time.
  const std::int64_t least = std::min(longest / kMaxBorders + 1, window / 2);
  return {near, std::max({std::int64_t(1), least, std::min(near, window / 4)})};
}

MethodSpec resolve_auto(const Geometry& geometry, MethodSpec method, std::int64_t ctx,
                        std::optional<double> scale) {
  if (!is_auto(method.name)) return method;
  const double windows = ctx > 0 ? double(ctx) / double(geometry.train_length) : scale.value_or(0);
  const bool inside = windows > 0 && windows <= 1;
  const bool own = long_list_reaches(geometry, windows) && method.parameters == Parameters{};
  method.name = inside ? "none" : own ? "vendor" : "pi";
  method.growth = inside ? Growth::none : own ? Growth::elastic : Growth::far;
  if (inside) method.parameters = {};  // there is nothing to extend
  return method;
}

void check_reach(const MethodSpec& method, std::int64_t ctx, std::optional<double> scale) {
  if (ctx == 0 || !scale) return;
  if (!is_auto(method.name)) {
    const Reach reach = method_row(method.name).reach;
    if (reach == Reach::length || reach == Reach::unchanged) return;
  }
  refuse(cat("ctx ", ctx, " and scale ", *scale, " both set how far ", to_string(method),
             " extends the model"),
         "give one of them");
}

std::string static_method(const Geometry& geometry, double scale) {
  if (long_list_reaches(geometry, scale)) return "vendor";
  try {
    make_plan(geometry, {.method = "pro", .scale = scale});
  } catch (const Error&) {
    return "ntk";  // no pair makes between 1 and 32 rotations, so there is no middle to extend
  }
  return "pro";
}

MethodSpec in_one_rung(const Geometry& geometry, const MethodSpec& asked, std::int64_t ctx) {
  MethodSpec method{.name = "pro", .growth = Growth::elastic};
  method.parameters.headroom = asked.parameters.headroom;
  method.parameters.rung_step =
      asked.parameters.rung_step.value_or(one_rung(double(ctx) / double(geometry.train_length)));
  return method;
}

}  // namespace mrrope
