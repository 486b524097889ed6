// SPDX-License-Identifier: Apache-2.0
// Methods: the published ways to extend RoPE, each a rule from geometry and scale to one cumulative
// factor per pair. A configured method is one value, MethodSpec, with one notation:
//   pro   pro(low=5,headroom=1.25)   elastic:yarn(beta_fast=16)   far:pi(near=L/32)   auto
// Only src/core/methods.cpp knows what a method does; src/core/parameters.cpp has the table of its
// parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mrrope {

// Absent: the method's default. parameters() says what each one means.
struct Parameters {
  std::optional<double> beta_fast, beta_slow;
  std::optional<double> low, high;
  std::optional<double> power;
  std::optional<double> attn_coef;
  std::vector<double> factors, lambdas;
  std::optional<double> rung_step;
  std::optional<double> headroom;
  std::optional<double> near, near_step;  // tokens; below 1: a fraction of the window
  std::optional<double> sharpen;
  // Those whose row in the table names no member, by name.
  std::map<std::string, double, std::less<>> others;

  bool operator==(const Parameters&) const = default;
};

// Which methods use a parameter.
enum class Use { betas, borders, own, lists, all, growing, far };
enum class Unit { number, pair, tokens, list };

struct ParameterInfo {
  std::string_view name;                     // in the notation and in JSON; the flag has dashes
  std::optional<double> Parameters::*value;  // null for a list and for one of the others
  std::vector<double> Parameters::*list;     // null for a number
  Use use;
  Unit unit;
  double min, max;
  std::string_view placeholder;  // of the value in help texts
  std::string_view help;
  std::string_view hint;  // what to give instead of a value out of range
};

// Every parameter, in the order in which the notation prints them.
std::span<const ParameterInfo> parameters();

// Static methods keep one plan; `elastic:` grows it with the sequence; `far:` does too, and applies
// it to far keys alone.
enum class Growth { none, elastic, far };

// A configured method.
struct MethodSpec {
  std::string name = "none";  // of methods(), or "auto"
  Growth growth = Growth::none;
  Parameters parameters = {};

  bool operator==(const MethodSpec&) const = default;
};

// The notation. Names may be in upper case; lengths may be written 1k, or L/32 for a fraction of
// the window. Throws Error (usage) that names the word and what to write instead. Whether a method
// uses a parameter is checked where it meets a geometry: see uses().
MethodSpec parse_method(std::string_view text);
// A comma-separated list of methods. A range, low=5..15 or high=30..45/5 with a step, stands for
// one method per value; where it makes low reach high, that method is left out.
std::vector<MethodSpec> parse_methods(std::string_view text);
// The shortest notation that parse_method() reads back as the same value.
std::string to_string(const MethodSpec& spec);

// One parameter of the notation from the text after its equals sign.
void set_parameter(Parameters& parameters, const ParameterInfo& parameter, const std::string& text);
bool given(const Parameters& parameters, const ParameterInfo& parameter);
// The value of a parameter that is no list; setting nullopt removes it.
std::optional<double> value_of(const Parameters& parameters, const ParameterInfo& parameter);
void set_value(Parameters& parameters, const ParameterInfo& parameter, std::optional<double> value);

// Whether the method reads this parameter. `auto` uses what far:pi uses.
bool uses(const MethodSpec& spec, const ParameterInfo& parameter);
// Throws Error (usage) for a parameter that the method does not use or that is out of range.
void check_method(const MethodSpec& spec);

// A static method with all that its plan depends on.
struct Extension {
  std::string method = "none";
  double scale = 1;            // S: the wanted length over the trained window
  std::int64_t length = 0;     // tokens; only dynamic-ntk reads it, 0 means the trained window
  Parameters parameters = {};  // those of a static plan; headroom is in the scale

  bool operator==(const Extension&) const = default;
};

struct MethodInfo {
  std::string_view name;
  std::string_view title;      // as the literature calls it
  double attn_coef = 0;        // default c of the temperature
  bool takes_betas = false;    // reads beta_fast and beta_slow
  bool takes_borders = false;  // reads low and high
  bool takes_lists = false;    // reads factors or lambdas
  std::string_view own = {};   // a parameter that no other method reads
};

// Every method, in the order in which tables show them.
std::span<const MethodInfo> methods();

// Throws Error (usage) that lists the known names.
const MethodInfo& find_method(std::string_view name);

}  // namespace mrrope
