// SPDX-License-Identifier: Apache-2.0
// What `auto` is, and what far:NAME does where a parameter is not given. docs/defaults.md has the
// evidence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "mrrope/ladder.h"

namespace mrrope {

// Without a value in the method.
inline constexpr double kRungStep = 1.19;
// Up to so many windows far:NAME has a short near part, no headroom and one rung.
inline constexpr double kFewWindows = 4;
// Its headroom beyond: of 1.25, 1.6 and 2 it found the most needles on MrRoPE Tiny, for 0.6 % in
// perplexity.
inline constexpr double kFarHeadroom = 1.6;
// Each place of the border is a rung with a plan of its own.
inline constexpr std::int64_t kMaxBorders = 4096;

struct FarDefaults {
  double rung_step;
  double headroom;
  NearPart near;
};
FarDefaults far_defaults(std::int64_t window, std::int64_t longest);

// `auto` is a function of the geometry and the length alone: none inside the window, far:pi beyond
// it. Other methods come back unchanged.
MethodSpec resolve_auto(const Geometry& geometry, MethodSpec method, std::int64_t ctx,
                        std::optional<double> scale = std::nullopt);

// Throws Error (usage) where ctx and scale both say how far the method reaches; only methods that
// follow the length use both.
void check_reach(const MethodSpec& method, std::int64_t ctx, std::optional<double> scale);

// The static method that takes the place of `auto` where a context cannot grow: pro, and ntk for a
// geometry that pro cannot extend.
std::string static_method(const Geometry& geometry, double scale);

// elastic:pro with one rung beyond the window, for the whole length: the unmodified model, then
// static pro. Headroom and rung step are those of `asked`.
MethodSpec in_one_rung(const Geometry& geometry, const MethodSpec& asked, std::int64_t ctx);

}  // namespace mrrope
