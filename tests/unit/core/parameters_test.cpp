// SPDX-License-Identifier: Apache-2.0
// The notation of a configured method, and the table behind it.

#include "base/random.h"
#include "base/text.h"
#include "core/methods.h"
#include "mrrope/plan.h"
#include "support/test.h"

namespace mrrope {
namespace {

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

std::string notation(const std::string& what, const std::string& text) {
  std::string out;
  const auto add = [&](std::string_view line) { out += cat(out.empty() ? "" : "\n", line); };
  if (what == "plan") {
    const MethodSpec spec = parse_method(text);
    const Geometry llama2{.rotary_dim = 128, .base = 1e4, .train_length = 4096};
    return describe(make_plan(llama2, {spec.name, 4, 0, spec.parameters}).geometry());
  }
  if (what == "uses") {
    for (const ParameterInfo& p : parameters()) {
      if (uses(parse_method(text), p)) add(p.name);
    }
    return out;
  }
  for (const MethodSpec& spec : parse_methods(text)) add(to_string(spec));
  return out;
}

TEST(Notation, IsReadOrRefused) {
  test::expect_transcript("notation", [](const std::string& input) {
    const std::size_t word = input.find(' ');
    return test::or_error([&] { return notation(input.substr(0, word), input.substr(word + 1)); });
  });
}

}  // namespace
}  // namespace mrrope
