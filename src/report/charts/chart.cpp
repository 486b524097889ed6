// SPDX-License-Identifier: Apache-2.0
#include "report/charts/chart.h"

#include <array>
#include <string_view>

#include "core/methods.h"

namespace mrrope::report {

namespace {

struct Usual {
  const char* name;
  int colour;
};
constexpr std::array<Usual, 13> kUsual = {{{"none", 0},
                                           {"original", 0},
                                           {"pro", 1},
                                           {"yarn", 2},
                                           {"uni", 3},
                                           {"power", 4},
                                           {"ntk", 5},
                                           {"pi", 6},
                                           {"yarn-rotations", 7},
                                           {"regressive", 10},
                                           {"elastic:pro", 9},
                                           {"elastic:yarn", 10},
                                           {"elastic:uni", 11}}};
// For other names, those that are rarely in the same chart first. 8 is the chosen plan of a search.
constexpr std::array<int, 11> kOthers = {8, 7, 6, 5, 4, 11, 10, 9, 3, 2, 1};

}  // namespace

bool is_elastic(const std::string& name) { return growth_of(name) != Growth::none; }

Series Palette::series(const std::string& name) {
  return {name, colour_of(name), is_elastic(name), {}};
}

int Palette::colour_of(const std::string& name) {
  for (const Usual& usual : kUsual) {
    if (name == usual.name) return usual.colour;
  }
  for (const auto& [known, colour] : given_) {
    if (known == name) return colour;
  }
  const int colour = kOthers[given_.size() % kOthers.size()];
  given_.emplace_back(name, colour);
  return colour;
}

}  // namespace mrrope::report
