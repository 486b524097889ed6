// SPDX-License-Identifier: Apache-2.0
// Methods: the published ways to extend RoPE, each a rule from geometry and scale to one cumulative
// factor per pair. Only src/core/methods.cpp knows what a method does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mrrope {

// An absent value means the method's default.
struct Parameters {
  std::optional<double> beta_fast;  // pairs with at least this many turns are unchanged: 32
                                    // (llama3: 4, its high_freq_factor)
  std::optional<double> beta_slow;  // pairs with at most this many are scaled in full: 1
  std::optional<int> low;           // first pair of the middle, instead of the one from beta_fast
  std::optional<int> high;          // first pair scaled in full, instead of the one from beta_slow
  std::optional<double> power;      // power: exponent p of eps_k ~ k^p; 0 is uni, 1 is pro
  std::optional<double> attn_coef;  // c of the temperature 1 + c ln S
  std::vector<double> factors;      // longrope, custom: one divisor of theta per pair
  std::vector<double> lambdas;      // custom: one radix multiplier per digit, rotary_dim/2 - 1

  bool operator==(const Parameters&) const = default;
};

// What a user asks for.
struct Extension {
  std::string method = "none";
  double scale = 1;         // S: the wanted length over the trained window
  std::int64_t length = 0;  // tokens; only dynamic-ntk reads it, 0 means the trained window
  Parameters parameters;

  bool operator==(const Extension&) const = default;
};

struct MethodInfo {
  std::string_view name;
  std::string_view title;     // as the literature calls it
  std::string_view equation;  // of the cumulative factor of pair i
  double attn_coef;           // default c of the temperature
  bool takes_betas;           // reads beta_fast and beta_slow
  bool takes_borders;         // reads low and high
  bool takes_power;           // reads power
  bool takes_lists;           // reads factors or lambdas
};

// Every method, in the order in which tables show them.
std::span<const MethodInfo> methods();

// Throws Error (usage) that lists the known names.
const MethodInfo& find_method(std::string_view name);

}  // namespace mrrope
