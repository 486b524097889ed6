// SPDX-License-Identifier: Apache-2.0
// A plan or a ladder as a user asks for it, by the flags of a verb or by the keys of a request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "mrrope/ladder.h"

namespace mrrope {

struct ContextRequest {
  std::string method;  // pro, elastic:pro, far:pi, ..., auto
  Parameters parameters = {};
  std::optional<double> scale = std::nullopt;
  std::int64_t ctx = 0;  // tokens; 0: not given
  std::optional<double> rung_step = std::nullopt;
  std::optional<double> headroom = std::nullopt;
  std::optional<std::int64_t> near = std::nullopt;
  std::optional<std::int64_t> near_step = std::nullopt;
};

using PlanOrLadder = std::variant<Plan, Ladder>;

// How messages name the members of a request: --near-step, or near_step.
enum class Spelling { flags, keys };

// "auto" is what mrrope does where no method is named.
inline constexpr std::string_view kAuto = "auto";
bool is_auto(std::string_view method);

// The default as a function of the geometry and the length alone: inside the window `auto` becomes
// none, beyond it far:pi. docs/defaults.md has the evidence. Requests for other methods come back
// unchanged.
ContextRequest resolve_auto(const Geometry& geometry, ContextRequest request);

// The static method that takes the place of `auto` where a context cannot grow: pro, and ntk for a
// geometry that pro cannot extend.
std::string static_method(const Geometry& geometry, double scale);

// elastic:pro with one rung beyond the window, for the whole length: the model as shipped, then
// static pro.
ContextRequest in_one_rung(const Geometry& geometry, ContextRequest request);

// What to type after --method for this request: "elastic:pro", or "elastic:power --power=0".
std::string description(const ContextRequest& request);

// The name of the method in lower case, without aliases. Throws Error (usage) if it is unknown.
std::string full_name(const ContextRequest& request);

// Throws Error (usage) where ctx and scale both say how far the method reaches; only methods that
// follow the length use both.
void check_reach(const ContextRequest& request, Spelling spelling);

// A static method gives a plan, one that grows a ladder. Throws Error (usage) where something is
// missing, or was given that this method does not use.
PlanOrLadder make_context(const Geometry& geometry, const ContextRequest& request,
                          Spelling spelling);

// The ladder itself, or one with the plan as its only rung, for `length` tokens.
Ladder as_ladder(const PlanOrLadder& context, std::int64_t length);

// The plan itself, or that of the last rung.
const Plan& last_plan(const PlanOrLadder& context);

}  // namespace mrrope
