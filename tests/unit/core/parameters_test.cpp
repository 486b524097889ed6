// SPDX-License-Identifier: Apache-2.0
// The notation of a configured method, and the table behind it.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "core/methods.h"
#include "support/expect_error.h"

namespace mrrope {
namespace {

TEST(Notation, PrintsWhatItReads) {
  for (const char* text :
       {"pro", "auto", "none", "pro(low=5,headroom=1.25)", "elastic:yarn(beta_fast=16)",
        "far:pi(near=L/32)", "far:pi(near=1024,near_step=L/3)", "power(power=-0.31)",
        "custom(factors=[1,1.5,2.25])", "auto(headroom=1.6)", "elastic:pro(rung_step=2)"}) {
    EXPECT_EQ(to_string(parse_method(text)), text);
  }
  EXPECT_EQ(to_string(parse_method(" Far:PI( near = l/32 , headroom = 1.60 ) ")),
            "far:pi(headroom=1.6,near=L/32)");
  EXPECT_EQ(to_string(parse_method("far:pi(near=1k)")), "far:pi(near=1024)");
  EXPECT_EQ(to_string(parse_method("pro()")), "pro");
}

// Any value of any parameter survives its own notation.
TEST(Notation, EveryValueReadsBackAsItself) {
  Random random(7);
  const auto unit = [&] { return double(random.next() >> 11) / double(std::uint64_t(1) << 53); };
  for (int i = 0; i < 2000; ++i) {
    MethodSpec spec{.name = "power", .growth = Growth(i % 3)};
    for (const ParameterInfo& p : parameters()) {
      if (unit() < 0.5) continue;
      if (p.list) {
        for (int k = 0; k < 1 + i % 4; ++k) (spec.parameters.*p.list).push_back(unit() * 64);
      } else if (p.unit == Unit::pair || (p.unit == Unit::tokens && unit() < 0.5)) {
        spec.parameters.*p.value = std::floor(1 + unit() * 9999);
      } else if (p.unit == Unit::tokens) {
        spec.parameters.*p.value = 0.001 + 0.9 * unit();
      } else {
        spec.parameters.*p.value = 1.01 + 14 * unit();
      }
    }
    EXPECT_EQ(parse_method(to_string(spec)), spec) << to_string(spec);
  }
}

TEST(Notation, AListSplitsOutsideOfParentheses) {
  std::vector<std::string> names;
  for (const MethodSpec& spec :
       parse_methods("none, pro(low=5,high=40),custom(factors=[1,2]),auto")) {
    names.push_back(to_string(spec));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"none", "pro(low=5,high=40)", "custom(factors=[1,2])",
                                             "auto"}));
}

TEST(Notation, ARangeStandsForOneMethodPerValue) {
  const auto names = [](const char* text) {
    std::string out;
    for (const MethodSpec& spec : parse_methods(text)) out += to_string(spec) + " ";
    return out;
  };
  EXPECT_EQ(names("pro(low=5..7)"), "pro(low=5) pro(low=6) pro(low=7) ");
  EXPECT_EQ(names("yarn(high=30..45/10)"), "yarn(high=30) yarn(high=40) ");
  EXPECT_EQ(names("pro(headroom=1..1.5/0.25)"),
            "pro(headroom=1) pro(headroom=1.25) pro(headroom=1.5) ");
  // Where low would reach high there is no method.
  EXPECT_EQ(names("pro(low=1..3,high=2..3)"),
            "pro(low=1,high=2) pro(low=1,high=3) pro(low=2,high=3) ");
}

TEST(Notation, RefusalsNameTheWordAndWhatToWrite) {
  const auto refused = [](const char* text, const char* word) {
    test::expect_error(ErrorKind::usage, word, [&] { parse_methods(text); });
  };
  refused("", "there is no method ''");
  refused("prp", "prp");
  refused("pro,", "there is no method ''");
  refused("far:auto", "auto");
  refused("elastic:far:pi", "far:pi");
  refused("pro(low=5", "no ')' at its end");
  refused("pro(low=5)x", "no ')' at its end");
  refused("pro(lo=5)", "there is no parameter 'lo'");
  refused("pro(low)", "'low' in pro(low) is not parameter=value");
  refused("pro(low=)", "'' is not a value of low");
  refused("pro(low=five)", "'five' is not a value of low");
  refused("pro(low=1.5)", "low 1.5 is not a whole number");
  refused("pro(low=-1)", "low -1 is not a whole number");
  refused("pro(low=1e400)", "low");
  refused("pro(low=nan)", "nan");
  refused("pro(low=5,low=6)", "low is given twice");
  refused("pro(low=7..5)", "'7..5' is not a range of low");
  refused("pro(low=5..7/0)", "not a range");
  refused("pro(low=0..100000)", "not a range");
  refused("pro(low=0..999,high=0..999)", "more than 4096 methods");
  refused("pro(low=5..6,high=4..5)", "no low is below a high");
  refused("pro(headroom=0.5)", "headroom 0.5 is not a number of at least 1");
  refused("power(power=17)", "power 17 is not a number from -16 to 16");
  refused("yarn(beta_fast=0)", "beta_fast 0 is not a number above 0");
  refused("far:pi(near=0)", "near 0");
  refused("far:pi(near=L/0.5)", "L/0.5");
  refused("far:pi(near=1.5)", "near 1.5 is not a whole number");
  refused("custom(factors=1)", "not a list");
  refused("custom(factors=[1,x])", "'x' in factors is not a number");
}

TEST(ParameterTable, NamesAreUniqueAndComplete) {
  std::set<std::string_view> names;
  for (const ParameterInfo& p : parameters()) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_NE(p.value == nullptr, p.list == nullptr) << p.name;
    EXPECT_FALSE(p.help.empty() || p.hint.empty() || p.placeholder.empty()) << p.name;
  }
  // A new member of Parameters has a row: what is given differs from what is not.
  Parameters all;
  for (const ParameterInfo& p : parameters()) {
    EXPECT_FALSE(given(all, p));
    set_parameter(all, p, p.list ? "[1]" : "1" + std::string(p.name == "rung_step" ? ".5" : ""));
    EXPECT_TRUE(given(all, p));
  }
}

TEST(ParameterTable, SaysWhichMethodUsesWhat) {
  const auto used = [](const char* method) {
    std::string out;
    for (const ParameterInfo& p : parameters()) {
      if (uses(parse_method(method), p)) out += cat(p.name, " ");
    }
    return out;
  };
  EXPECT_EQ(used("pi"), "attn_coef headroom ");
  EXPECT_EQ(used("pro"), "beta_fast beta_slow low high attn_coef headroom ");
  EXPECT_EQ(used("elastic:power"),
            "beta_fast beta_slow low high power attn_coef rung_step headroom sharpen ");
  EXPECT_EQ(used("auto"), used("far:pi"));
  EXPECT_EQ(used("custom"), "attn_coef factors lambdas headroom ");
}

}  // namespace
}  // namespace mrrope
