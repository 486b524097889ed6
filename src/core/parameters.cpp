// SPDX-License-Identifier: Apache-2.0
// The table of parameters, and the notation of a configured method. CONTRIBUTING.md says how to add
// a parameter.
#include <cmath>
#include <limits>

#include "base/text.h"
#include "core/methods.h"

namespace mrrope {
namespace {

constexpr double kPositive = std::numeric_limits<double>::min();
constexpr double kAny = std::numeric_limits<double>::max();
constexpr double kMaxPower = 16;  // 32768^16 is still a finite double, also summed
constexpr double kMaxTokens = 0x1p40;
constexpr double kMaxSharpen = 16;
// Below this a ladder to 1000 times the window would have thousands of rungs, each a turn of the
// whole cache.
constexpr double kMinRungStep = 1.01;
// Methods that one range, or several, may stand for.
constexpr double kMaxMethods = 4096;

using P = Parameters;
// clang-format off
constexpr ParameterInfo kParameters[] = {
  {"beta_fast", &P::beta_fast, nullptr, Use::betas,   Unit::number, kPositive,    kAny,       "TURNS",
   "Pairs with at least this many rotations in the window are unchanged (default 32; llama3: 4)", "32 is the default"},
  {"beta_slow", &P::beta_slow, nullptr, Use::betas,   Unit::number, kPositive,    kAny,       "TURNS",
   "Pairs with at most this many rotations in the window are scaled in full (default 1)", "1 is the default"},
  {"low",       &P::low,       nullptr, Use::borders, Unit::pair,   0,            kMaxTokens, "PAIR",
   "First pair of the middle, instead of the one from beta_fast", "pairs are counted from 0"},
  {"high",      &P::high,      nullptr, Use::borders, Unit::pair,   0,            kMaxTokens, "PAIR",
   "First pair scaled in full, instead of the one from beta_slow", "pairs are counted from 0"},
  {"power",     &P::power,     nullptr, Use::own,     Unit::number, -kMaxPower,   kMaxPower,  "P",
   "power: the exponent p; 0 is uni, 1 is pro (default 1)", "0 is uni, 1 is pro"},
  {"attn_coef", &P::attn_coef, nullptr, Use::all,     Unit::number, -kAny,        kAny,       "C",
   "Temperature 1 + C ln S; the default depends on the method", "0.1 is YaRN's, 0 means none"},
  {"factors",   nullptr, &P::factors,   Use::lists,   Unit::list,   kPositive,    kAny,       "[F0,F1,...]",
   "longrope, custom: one factor per pair", "every factor is positive"},
  {"lambdas",   nullptr, &P::lambdas,   Use::lists,   Unit::list,   kPositive,    kAny,       "[L0,L1,...]",
   "custom: one radix multiplier per digit", "every lambda is positive"},
  {"rung_step", &P::rung_step, nullptr, Use::growing, Unit::number, kMinRungStep, kAny,       "STEP",
   "Ratio between the lengths of neighboring rungs (default 1.19; far: 1.42)", "without it 1.19, with far: 1.42; 2 means few rungs"},
  {"headroom",  &P::headroom,  nullptr, Use::all,     Unit::number, 1,            kAny,       "H",
   "Extra scale factor (default 1; far: 1.25)", "without it 1, with far: 1.25"},
  {"near",      &P::near,      nullptr, Use::far,     Unit::tokens, kPositive,    kMaxTokens, "LENGTH",
   "Tokens that are always near, at their true distance (default: 1024, at most 1/4 and at least 1/32 of the window)", "without it 1024, at most 1/4 and at least 1/32 of the window"},
  {"near_step", &P::near_step, nullptr, Use::far,     Unit::tokens, kPositive,    kMaxTokens, "LENGTH",
   "Tokens by which the border between near and far moves (default: near, at most 1/4 of the window)", "without it as many as near, at most 1/4 of the window"},
  {"sharpen",   &P::sharpen,   nullptr, Use::growing, Unit::number, 0,            kMaxSharpen, "G",
   "Multiply queries beyond the window of L tokens by (ln n / ln L)^(G log2(n / L)), at the n tokens where a rung ends (default 0; far: 0.2, less for windows below 8192)", "0 means none; without it 0, with far: 0.2, and less for windows below 8192"},
};

constexpr std::pair<std::string_view, Growth> kPrefixes[] = {{"elastic:", Growth::elastic},
                                                             {"far:", Growth::far}};
// clang-format on

std::vector<ParameterInfo>& rows() {
  static std::vector<ParameterInfo> all(std::begin(kParameters), std::end(kParameters));
  return all;
}

const ParameterInfo& parameter(std::string_view name) {
  const std::string wanted = lower_case(name);
  std::vector<std::string> names;
  for (const ParameterInfo& p : rows()) {
    if (p.name == wanted) return p;
    names.emplace_back(p.name);
  }
  refuse(cat("there is no parameter '", name, "'"),
         cat(did_you_mean(name, names), "the parameters are ", joined(names, ", ")));
}

void check_value(const ParameterInfo& p, double value) {
  const bool whole = p.unit == Unit::pair || (p.unit == Unit::tokens && value >= 1);
  if (value >= p.min && value <= p.max && (!whole || value == std::floor(value))) return;
  refuse_if(value > p.max && p.max == kMaxTokens, cat(p.name, " ", value, " is too large"),
            std::string(p.hint));
  std::string range = whole ? "a whole number" : "a number";
  if (p.min == kPositive) {
    range += " above 0";
  } else if (p.min > -kAny) {
    range += cat(p.max < kMaxTokens ? " from " : " of at least ", p.min);
    if (p.max < kMaxTokens) range += cat(" to ", p.max);
  }
  refuse(cat(p.name, " ", value, " is not ", range), std::string(p.hint));
}

double parse_value(const ParameterInfo& p, const std::string& text) {
  std::optional<double> value = parse_double(text);
  if (!value && p.unit == Unit::tokens) {
    if (const auto tokens = parse_length(text)) value = double(*tokens);
    if (text.size() > 2 && lower_case(text.substr(0, 2)) == "l/") {
      if (const auto parts = parse_double(text.substr(2)); parts && *parts > 1) value = 1 / *parts;
    }
  }
  refuse_if(!value, cat("'", text, "' is not a value of ", p.name),
            p.unit == Unit::tokens ? "write tokens as 1024 or 1k, or L/32 for a part of the window"
                                   : "write a number, e.g. 1.5");
  check_value(p, *value);
  return *value;
}

std::vector<double> parse_list(const ParameterInfo& p, std::string_view text) {
  refuse_if(text.size() < 2 || text.front() != '[' || text.back() != ']',
            cat("'", text, "' is not a list for ", p.name), cat("write ", p.name, "=[1,1.5,2]"));
  std::vector<double> out;
  for (const std::string& entry : split_list(text.substr(1, text.size() - 2))) {
    const auto value = parse_double(entry);
    if (!value) refuse(cat("'", entry, "' in ", p.name, " is not a number"), "write [1,1.5,2]");
    out.push_back(*value);
  }
  return out;
}

// The name with its prefix and without parameters.
MethodSpec parse_name(std::string_view text) {
  const Growth growth = growth_of(lower_case(text));
  if (growth != Growth::none) text.remove_prefix(text.find(':') + 1);
  const bool automatic = growth == Growth::none && is_auto(text);
  return {std::string(automatic ? kAuto : method_row(text).info.name), growth};
}

// "low" and "5" of "low=5".
using Assignment = std::pair<const ParameterInfo*, std::string>;

std::vector<Assignment> parse_assignments(std::string_view inside, std::string_view all) {
  std::vector<Assignment> out;
  if (trimmed(inside).empty()) return out;
  for (const std::string& word : split_list(inside)) {
    const std::size_t equals = word.find('=');
    refuse_if(equals == std::string::npos, cat("'", word, "' in ", all, " is not parameter=value"),
              "write pro(low=5,high=40)");
    const ParameterInfo& p = parameter(trimmed(word.substr(0, equals)));
    for (const Assignment& before : out) {
      if (before.first == &p) refuse(cat(p.name, " is given twice in ", all), "give it once");
    }
    out.push_back({&p, trimmed(word.substr(equals + 1))});
  }
  return out;
}

// "5..15" or "30..45/5" as its values; other texts as themselves.
std::vector<std::string> values_of(const Assignment& a) {
  const ParameterInfo& p = *a.first;
  const std::string& text = a.second;
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos || p.list) return {text};
  const std::size_t slash = text.find('/', dots);
  const double first = parse_value(p, text.substr(0, dots));
  const double last = parse_value(p, text.substr(dots + 2, slash - dots - 2));
  const double step =
      slash == std::string::npos ? 1 : parse_double(text.substr(slash + 1)).value_or(std::nan(""));
  refuse_if(!(step > 0) || last < first || (last - first) / step >= kMaxMethods,
            cat("'", text, "' is not a range of ", p.name),
            cat("write ", p.name, "=5..15, or 5..15/2 with a step"));
  std::vector<std::string> out;
  for (int i = 0; first + i * step <= last; ++i) out.push_back(number(first + i * step));
  return out;
}

std::string value_text(const ParameterInfo& p, double value) {
  if (p.unit == Unit::tokens && value < 1) {
    const double parts = std::round(1 / value);
    if (1 / parts == value) return cat("L/", parts);
  }
  return number(value);
}

// The words of one method, each with all its values.
void expand(std::string_view text, std::vector<MethodSpec>& out) {
  const std::size_t open = text.find('(');
  std::vector<MethodSpec> made = {parse_name(trimmed(std::string(text.substr(0, open))))};
  bool ranges = false;
  if (open != std::string_view::npos) {
    refuse_if(text.back() != ')', cat("'", text, "' has no ')' at its end"),
              "write pro(low=5,high=40)");
    for (const Assignment& a :
         parse_assignments(text.substr(open + 1, text.size() - open - 2), text)) {
      const std::vector<std::string> values = values_of(a);
      ranges |= values.size() > 1;
      refuse_if(double(made.size() * values.size()) > kMaxMethods,
                cat(text, " stands for more than ", kMaxMethods, " methods"),
                "give smaller ranges");
      std::vector<MethodSpec> next;
      for (const MethodSpec& spec : made) {
        for (const std::string& value : values) {
          next.push_back(spec);
          set_parameter(next.back().parameters, *a.first, value);
        }
      }
      made = std::move(next);
    }
  }
  for (MethodSpec& spec : made) {
    const Parameters& p = spec.parameters;
    if (ranges && p.low && p.high && *p.low >= *p.high) continue;
    out.push_back(std::move(spec));
  }
}

}  // namespace

std::span<const ParameterInfo> parameters() { return rows(); }

void register_parameter(const ParameterInfo& parameter) { rows().push_back(parameter); }

bool is_auto(std::string_view name) { return lower_case(name) == kAuto; }

void set_parameter(Parameters& parameters, const ParameterInfo& p, const std::string& text) {
  if (p.list) {
    parameters.*p.list = parse_list(p, text);
  } else {
    set_value(parameters, p, parse_value(p, text));
  }
}

std::vector<MethodSpec> parse_methods(std::string_view text) {
  std::vector<MethodSpec> out;
  for (const std::string& word : split_list(text)) {
    const std::size_t before = out.size();
    expand(word, out);
    refuse_if(out.size() == before, cat("no low is below a high in ", word),
              "give smaller values of low, or larger ones of high");
  }
  return out;
}

MethodSpec parse_method(std::string_view text) {
  std::vector<MethodSpec> all = parse_methods(text);
  refuse_if(all.size() != 1,
            cat("'", text, "' stands for ", all.size(), " methods where one is wanted"),
            "give one method, e.g. pro");
  return all.front();
}

std::string method_name(std::string_view name, Growth growth) {
  for (const auto& [prefix, g] : kPrefixes) {
    if (g == growth) return cat(prefix, name);
  }
  return std::string(name);
}

Growth growth_of(std::string_view row) noexcept {
  for (const auto& [prefix, growth] : kPrefixes) {
    if (row.substr(0, prefix.size()) == prefix) return growth;
  }
  return Growth::none;
}

std::string bare_name(std::string_view row) {
  if (growth_of(row) != Growth::none) row.remove_prefix(row.find(':') + 1);
  return std::string(row.substr(0, row.find('(')));
}

std::string to_string(const MethodSpec& spec) {
  std::vector<std::string> words;
  for (const ParameterInfo& p : rows()) {
    if (!given(spec.parameters, p)) continue;
    if (!p.list) {
      words.push_back(cat(p.name, "=", value_text(p, *value_of(spec.parameters, p))));
      continue;
    }
    words.push_back(cat(p.name, "=[", joined(mapped(spec.parameters.*p.list, number), ","), "]"));
  }
  return method_name(spec.name, spec.growth) +
         (words.empty() ? "" : cat("(", joined(words, ","), ")"));
}

bool given(const Parameters& parameters, const ParameterInfo& p) {
  return p.list ? !(parameters.*p.list).empty() : value_of(parameters, p).has_value();
}

std::optional<double> value_of(const Parameters& parameters, const ParameterInfo& p) {
  if (p.value) return parameters.*p.value;
  const auto at = parameters.others.find(p.name);
  return at == parameters.others.end() ? std::nullopt : std::optional(at->second);
}

void set_value(Parameters& parameters, const ParameterInfo& p, std::optional<double> value) {
  if (p.value) {
    parameters.*p.value = value;
  } else if (value) {
    parameters.others.insert_or_assign(std::string(p.name), *value);
  } else {
    parameters.others.erase(std::string(p.name));
  }
}

bool uses(const MethodSpec& spec, const ParameterInfo& p) {
  if (is_auto(spec.name)) return uses({.name = "pi", .growth = Growth::far}, p);
  const MethodInfo& method = find_method(spec.name);
  return p.use == Use::all || (p.use == Use::betas && method.takes_betas) ||
         (p.use == Use::borders && method.takes_borders) ||
         (p.use == Use::lists && method.takes_lists) ||
         (p.use == Use::own && method.own == p.name) ||
         (p.use == Use::growing && spec.growth != Growth::none) ||
         (p.use == Use::far && spec.growth == Growth::far);
}

void check_method(const MethodSpec& spec) {
  for (const ParameterInfo& p : rows()) {
    if (!given(spec.parameters, p)) continue;
    if (!uses(spec, p)) {
      std::string hint = cat("leave out ", p.name);
      if (p.use == Use::far || p.use == Use::growing) {
        const bool extends = method_row(spec.name).reach != Reach::unchanged;
        const bool far = p.use == Use::far;
        const std::string other = extends ? spec.name : far ? "pi" : "pro";
        hint += ", or use " + method_name(other, far ? Growth::far : Growth::elastic);
      }
      refuse(cat(method_name(spec.name, spec.growth), " does not use ", p.name), hint);
    }
    if (!p.list) check_value(p, *value_of(spec.parameters, p));
  }
}

}  // namespace mrrope
