// SPDX-License-Identifier: Apache-2.0
#include "core/defaults.h"

#include <algorithm>

#include "base/text.h"
#include "core/methods.h"
#include "mrrope/error.h"

namespace mrrope {

namespace {

// The rung step that reaches so many windows in one rung.
double one_rung(double windows) { return std::max(2.0, windows); }

}  // namespace

FarDefaults far_defaults(std::int64_t window, std::int64_t longest) {
  const double times = double(longest) / double(window);
  const bool few = times <= kFewWindows;
  // Up to a few windows far keys are drawn together as little as the length allows, so that a model
  // can still tell them apart. 256 tokens near is the least that was measured.
  const std::int64_t near =
      few ? std::max({std::int64_t(1), window / 32, std::min<std::int64_t>(256, window / 4)})
          : std::max<std::int64_t>(1, window / 4);
  // So far that the border would move too often, it moves by more at a time.
  const std::int64_t step = std::clamp(longest / kMaxBorders + 1, near, std::max(near, window / 2));
  return {few ? one_rung(times) : kRungStep, few ? 1 : kFarHeadroom, {near, step}};
}

MethodSpec resolve_auto(const Geometry& geometry, MethodSpec method, std::int64_t ctx,
                        std::optional<double> scale) {
  if (!is_auto(method.name)) return method;
  const double windows = ctx > 0 ? double(ctx) / double(geometry.train_length) : scale.value_or(0);
  const bool inside = windows > 0 && windows <= 1;
  method.name = inside ? "none" : "pi";
  method.growth = inside ? Growth::none : Growth::far;
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
