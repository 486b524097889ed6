// SPDX-License-Identifier: Apache-2.0
#include "report/charts/chart.h"

#include <array>
#include <string_view>

#include "core/methods.h"

namespace mrrope {

namespace {

struct Usual {
  const char* name;
  int colour;
};
constexpr std::array<Usual, 9> kUsual = {{{"none", 0},
                                          {"original", 0},
                                          {"pro", 1},
                                          {"yarn", 2},
                                          {"uni", 3},
                                          {"power", 4},
                                          {"ntk", 5},
                                          {"pi", 6},
                                          {"yarn-rotations", 7}}};

}  // namespace

bool is_elastic(const std::string& name) { return split_method_name(name).elastic; }

Series Palette::series(const std::string& name) {
  return {name, colour_of(name), is_elastic(name), {}};
}

int Palette::colour_of(const std::string& full) {
  const std::string name = split_method_name(full).method;
  for (const Usual& usual : kUsual) {
    if (name == usual.name) return usual.colour;
  }
  for (const auto& [known, colour] : given_) {
    if (known == name) return colour;
  }
  // From the far end, where the usual methods are rare.
  const int colour = kColours - 1 - int(given_.size()) % (kColours - 1);
  given_.emplace_back(name, colour);
  return colour;
}

}  // namespace mrrope
