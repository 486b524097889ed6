// SPDX-License-Identifier: Apache-2.0
#include "mrrope/ladder.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/words.h"
#include "core/methods.h"

namespace mrrope {
namespace {

bool has_one_factor(const Plan& plan) {
  const std::vector<double>& all = plan.factor();
  return std::ranges::all_of(all, [&](double f) { return f == all.front(); });
}

// Below 1: a fraction of the window.
std::int64_t tokens_of(double length, std::int64_t window) {
  return length < 1 ? std::llround(std::floor(length * double(window) + 1e-6))
                    : std::int64_t(length);
}

// How far a ladder that grows reaches, by its length or its scale.
std::int64_t longest_of(const Geometry& geometry, const MethodSpec& method, std::int64_t ctx,
                        std::optional<double> scale) {
  if (ctx != 0) return ctx;
  refuse_if(!scale, cat("no context length given for ", to_string(method)),
            "give --ctx 128k; in a program ctx=131072");
  const double tokens = *scale * double(geometry.train_length);
  refuse_if(!(tokens >= 1 && tokens < 0x1p40), cat("scale ", *scale, " is not possible"),
            "give a scale above 1");
  return std::llround(tokens);
}

Plan static_plan(const Geometry& geometry, const MethodSpec& method, std::int64_t ctx,
                 std::optional<double> scale) {
  const Reach reach = method_row(method.name).reach;
  Extension e{.method = method.name, .parameters = method.parameters};
  e.parameters.headroom.reset();
  const double headroom = method.parameters.headroom.value_or(1);
  const bool beyond = ctx > geometry.train_length;
  if (reach == Reach::unchanged) return make_plan(geometry, e);
  if (reach == Reach::length) {
    e.scale = scale.value_or(1);
    e.length = beyond ? std::llround(headroom * double(ctx)) : ctx;
  } else if (scale) {
    e.scale = *scale > 1 ? headroom * *scale : *scale;
  } else if (ctx > 0) {
    e.scale = beyond ? headroom * double(ctx) / double(geometry.train_length) : 1;
  } else if (reach != Reach::numbers) {
    refuse(cat("no context length or scale given for ", to_string(method)),
           "give --ctx 128k or --scale 4; in a program ctx=131072 or scale=4");
  }
  return make_plan(geometry, e);
}

}  // namespace

constexpr double kMostSharp = 1000;

// Makes the rungs of a method that grows.
struct LadderMaker {
  const Geometry& geometry;
  const MethodSpec& method;
  std::int64_t longest;
  std::optional<double> scale;  // of a method that follows the length
  std::int64_t window = geometry.train_length;
  NearPart usual = default_near_part(window, longest);
  Ladder ladder = {};

  void set_parameters() {
    const Parameters& given = method.parameters;
    const bool has_near_part = method.growth == Growth::far;
    ladder.extension_.method = method.name;
    ladder.extension_.scale = scale.value_or(1);
    ladder.extension_.parameters = given;
    Parameters& own = ladder.extension_.parameters;  // those of a static plan
    own.rung_step = own.headroom = own.near = own.near_step = own.sharpen = std::nullopt;
    const bool one_plan = method_row(method.name).reach == Reach::file;
    ladder.rung_step_ =
        given.rung_step.value_or(has_near_part ? kFarRungStep
                                 : one_plan    ? one_rung(double(longest) / double(window))
                                               : kRungStep);
    ladder.headroom_ = given.headroom.value_or(has_near_part ? kFarHeadroom : 1);
    ladder.sharpen_ = given.sharpen.value_or(has_near_part ? default_sharpen(window) : 0);
    if (!has_near_part) return;
    ladder.near_ =
        given.near ? default_near_part(window, longest, tokens_of(*given.near, window)) : usual;
    if (given.near_step) ladder.near_->step = tokens_of(*given.near_step, window);
  }

  void check_near() const {
    const NearPart& near = *ladder.near_;
    const auto [length, step] = usual;
    const std::string hint =
        window - length - step < 1
            ? "use a static method, e.g. pro"
            : cat("give near=", length, ",near_step=", step, ", or leave them out");
    refuse_if(near.length < 1 || near.step < 1,
              cat("a near part of ", near.length, " tokens with steps of ", near.step,
                  " is not possible: both are at least 1"),
              hint);
    refuse_if(near.length >= window || near.step >= window - near.length,
              cat("a near part of ", near.length, " tokens and a step of ", near.step,
                  " leave no room for far keys in a window of ", window),
              hint);
    const std::int64_t room = window - near.length - near.step;
    refuse_if(double(room) < ladder.headroom_,
              cat("headroom ", ladder.headroom_, " leaves far keys less than one position of the ",
                  room, " that the near part leaves them"),
              hint);
    if (longest / near.step > kMaxBorders) {
      const std::int64_t least = longest / kMaxBorders + 1;
      refuse(cat("the border would move ", longest / near.step, " times by ", near.step,
                 " tokens on the way to ", longest, "; at most ", kMaxBorders, " are possible"),
             least < window - near.length ? cat("give near_step=", least, " or more")
                                          : cat("give a length of ", kMaxBorders * near.step,
                                                " or less, or a static method"));
    }
    if (!has_far_form(method.name)) {
      std::vector<std::string> names;
      for (const MethodInfo& m : methods()) {
        if (has_far_form(m.name)) names.push_back(method_name(m.name, Growth::far));
      }
      refuse(cat(method_name(method.name, Growth::far), " is not possible: the factors of ",
                 method.name, " do not follow from a scale"),
             cat("the far methods are ", joined(names, ", ")));
    }
  }

  std::int64_t border_at(std::int64_t length) const {
    const NearPart& near = *ladder.near_;
    return near.step * ((length - near.length) / near.step);
  }

  // The plan of far keys up to this length, where the border reaches its furthest.
  Plan far_plan(std::int64_t length) const {
    const NearPart& near = *ladder.near_;
    const double room = double(window - near.length - near.step) / ladder.headroom_;
    const std::int64_t border = border_at(length);
    Extension e = ladder.extension_;
    if (!e.parameters.attn_coef) e.parameters.attn_coef = 0;
    e.length = 0;
    e.scale = std::max(1.0, double(border) / room);
    Plan plan = make_plan(geometry, e);
    if (e.scale == 1 || !has_one_factor(plan)) return plan;
    // The shift is a whole number at the furthest border.
    e.scale = double(border) / std::floor(room);
    return make_plan(geometry, e);
  }

  // Of queries up to this length.
  double sharpness_at(std::int64_t length) const {
    if (ladder.sharpen_ == 0 || window < 2) return 1;
    return std::pow(std::log(double(length)) / std::log(double(window)),
                    ladder.sharpen_ * std::log2(double(length) / double(window)));
  }

  void add_far_rungs(std::int64_t length) {
    const NearPart& near = *ladder.near_;
    const Plan plan = far_plan(length);
    while (ladder.longest() < length) {
      const std::int64_t border = border_at(ladder.longest() + 1);
      const double seen = ladder.has_single_factor_ ? 1 / plan.factor().front() : 1;
      const std::int64_t end = border + near.length + near.step - 1;  // the border moves behind it
      ladder.rungs_.push_back({std::min(length, end), plan, border,
                               std::llround(double(border) * (1 - seen)), sharpness_at(length)});
    }
  }

  Ladder make() {
    set_parameters();
    const Reach reach = method_row(method.name).reach;
    refuse_if(method.growth == Growth::elastic && reach == Reach::unchanged,
              cat(method_name(method.name, Growth::elastic), " is not possible: ", method.name,
                  " is the same at every length"),
              cat("use ", method.name, ", or a method that grows, e.g. elastic:pro"));
    ladder.rungs_.push_back({window, make_plan(geometry, {})});
    if (reach == Reach::file) make_plan(geometry, ladder.extension_);  // refused at any length
    if (ladder.near_) {
      check_near();
      ladder.has_single_factor_ = has_one_factor(far_plan(longest));
    }
    refuse_if(!(sharpness_at(longest) <= kMostSharp),
              cat("sharpen ", ladder.sharpen_, " multiplies queries at ", longest, " tokens by ",
                  significant(sharpness_at(longest), 3), ", more than ", kMostSharp),
              cat("give sharpen=", significant(default_sharpen(window), 3), " or leave it out"));
    for (int k = 1; ladder.longest() < longest; ++k) {
      const double grown = double(window) * std::pow(ladder.rung_step_, k);
      const std::int64_t length = grown < double(longest) ? std::llround(grown) : longest;
      if (length <= ladder.longest()) continue;  // a window of a few tokens
      if (ladder.near_) {
        add_far_rungs(length);
        continue;
      }
      Extension e = ladder.extension_;
      e.length = std::llround(ladder.headroom_ * double(length));
      if (reach != Reach::length) e.scale = ladder.headroom_ * double(length) / double(window);
      ladder.rungs_.push_back({length, make_plan(geometry, e), 0, 0, sharpness_at(length)});
    }
    return std::move(ladder);
  }
};

std::size_t Ladder::rung_at(std::int64_t length) const {
  for (std::size_t i = 0; i < rungs_.size(); ++i) {
    if (length <= rungs_[i].length) return i;
  }
  refuse(cat("a sequence of ", length, " tokens is longer than the last rung, ", longest()),
         cat("make the ladder longer: --ctx ", length));
}

Ladder make_ladder(const Geometry& geometry, const MethodSpec& asked, std::int64_t ctx,
                   std::optional<double> scale) {
  validate(geometry);
  if (ctx < 0) refuse(cat("a context of ", ctx, " tokens is not possible"), "give 1 or more");
  check_method(asked);
  const MethodSpec method = resolve_auto(geometry, asked, ctx, scale);
  if (method.growth != Growth::none) {
    const bool by_length = method_row(method.name).reach == Reach::length;  // scale is its factor
    return LadderMaker{geometry, method, longest_of(geometry, method, ctx, scale),
                       by_length ? scale : std::nullopt}
        .make();
  }
  const std::int64_t given =
      ctx == 0 && scale ? std::llround(*scale * double(geometry.train_length)) : ctx;
  return make_ladder(static_plan(geometry, method, ctx, scale),
                     given > 0 ? std::max(given, ctx > 0 ? ctx : geometry.train_length) : 0);
}

Ladder make_ladder(const Plan& plan, std::int64_t longest) {
  refuse_if(longest < 0, cat("a ladder of ", longest, " tokens is not possible"), "give 1 or more");
  const Extension& e = plan.extension();
  const std::int64_t window = plan.geometry().train_length;
  Ladder ladder;
  ladder.extension_ = e;
  if (longest == 0) {
    longest = std::max({window, e.length, std::int64_t(std::llround(e.scale * double(window)))});
  }
  ladder.rungs_.push_back({longest, plan});
  return ladder;
}

double seen_distance(const Ladder& ladder, std::int64_t i, std::int64_t j, std::size_t pair) {
  const Rung& rung = ladder.rungs()[ladder.rung_at(i + 1)];
  const double factor = rung.plan.factor().at(pair);
  if (!ladder.near()) return double(i - j) / factor;
  if (j >= rung.border) return double(i - j);
  if (ladder.has_single_factor()) return double(i - rung.shift) - double(j) / factor;
  return double(i - rung.border) + double(rung.border - j) / factor;
}

}  // namespace mrrope
