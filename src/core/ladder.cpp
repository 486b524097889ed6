// SPDX-License-Identifier: Apache-2.0
#include "mrrope/ladder.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "core/methods.h"
#include "mrrope/error.h"

namespace mrrope {

namespace {

// Below this a ladder to 1000 times the window would have thousands of rungs, each a turn of the
// whole cache.
constexpr double kSmallestStep = 1.01;

[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  throw Error(ErrorKind::usage, message, hint);
}

// " far:pi, far:ntk, ..."
std::string far_names() {
  std::string names;
  for (const MethodInfo& m : methods()) {
    if (has_far_form(m.name)) names += cat(names.empty() ? " far:" : ", far:", m.name);
  }
  return names;
}

void check_near(const NearPart& near, const Geometry& geometry, const LadderRequest& request) {
  const std::int64_t window = geometry.train_length;
  const NearPart defaults = *far_defaults(window, request.longest).near;
  const std::string hint = window - defaults.length - defaults.step < 1
                               ? "give a static method, e.g. --method pro"
                               : cat("give --near ", defaults.length, " --near-step ",
                                     defaults.step, ", or leave them out");
  if (near.length < 1 || near.step < 1) {
    refuse(cat("a near part of ", near.length, " tokens with steps of ", near.step,
               " is not possible: both are at least 1"),
           hint);
  }
  if (near.length >= window || near.step >= window - near.length) {
    refuse(cat("a near part of ", near.length, " tokens and a step of ", near.step,
               " leave no room for far keys in a window of ", window),
           hint);
  }
  const std::int64_t room = window - near.length - near.step;
  if (double(room) < request.headroom) {
    refuse(cat("headroom ", request.headroom, " leaves far keys less than one position of the ",
               room, " that the near part leaves them"),
           hint);
  }
  if (request.longest / near.step > kMostBorders) {
    const std::int64_t step = request.longest / kMostBorders + 1;
    refuse(
        cat("the border would move ", request.longest / near.step, " times by ", near.step,
            " tokens on the way to ", request.longest, "; at most ", kMostBorders, " are possible"),
        step < window - near.length
            ? cat("give --near-step ", step, " or more")
            : cat("give --ctx ", kMostBorders * near.step, " or less, or a static method"));
  }
  const Method& row = method_row(request.extension.method);
  if (!has_far_form(row.info.name)) {
    refuse(cat("far:", row.info.name, " is not possible: the factors of ", row.info.name,
               " do not follow from a scale"),
           cat("the far methods are", far_names()));
  }
}

bool one_factor(const Plan& plan) {
  for (const double f : plan.factor()) {
    if (f != plan.factor().front()) return false;
  }
  return true;
}

std::int64_t border_at(const NearPart& near, std::int64_t length) {
  return near.step * ((length - near.length) / near.step);
}

// The plan of far keys up to this length, where the border reaches its furthest.
Plan far_plan(const Geometry& geometry, const LadderRequest& request, std::int64_t length) {
  const NearPart& near = *request.near;
  const double room = double(geometry.train_length - near.length - near.step) / request.headroom;
  const std::int64_t border = border_at(near, length);
  Extension e = request.extension;
  if (!e.parameters.attn_coef) e.parameters.attn_coef = 0;
  e.length = 0;
  e.scale = std::max(1.0, double(border) / room);
  Plan plan = make_plan(geometry, e);
  if (e.scale == 1 || !one_factor(plan)) return plan;
  // The shift is a whole number at the furthest border.
  e.scale = double(border) / std::floor(room);
  return make_plan(geometry, e);
}

}  // namespace

double one_rung(double windows) { return std::max(2.0, windows); }

LadderRequest far_defaults(std::int64_t window, std::int64_t longest) {
  const double times = double(longest) / double(window);
  LadderRequest far;
  far.longest = longest;
  std::int64_t near = std::max<std::int64_t>(1, window / 4);
  if (times <= kFewWindows) {
    // Far keys are drawn together as little as the length allows, so that a model can still tell
    // them apart. 256 tokens near is the least that was measured.
    near = std::max({std::int64_t(1), window / 32, std::min<std::int64_t>(256, window / 4)});
    far.rung_step = one_rung(times);
  } else {
    far.headroom = kFarHeadroom;
  }
  far.near = NearPart{near, near};
  // So far that the border would move too often, it moves by more at a time.
  far.near->step = std::clamp(longest / kMostBorders + 1, near, std::max(near, window / 2));
  return far;
}

void check_headroom(double headroom) {
  if (headroom >= 1 && std::isfinite(headroom)) return;
  refuse(cat("headroom ", headroom, " is below 1: a scale smaller than the length ratio collapses"),
         "1 is the default, 1.25 helps retrieval");
}

std::size_t Ladder::rung_at(std::int64_t length) const {
  for (std::size_t i = 0; i < rungs_.size(); ++i) {
    if (length <= rungs_[i].length) return i;
  }
  refuse(cat("a sequence of ", length, " tokens is longer than the last rung, ", longest()),
         cat("make the ladder longer: --ctx ", length));
}

Ladder make_ladder(const Geometry& geometry, const LadderRequest& request) {
  validate(geometry);
  if (!(request.rung_step >= kSmallestStep) || !std::isfinite(request.rung_step)) {
    refuse(cat("rung step ", request.rung_step, " is below ", kSmallestStep,
               ": lengths must grow from rung to rung"),
           "1.19 is the default, 2 means few rungs");
  }
  check_headroom(request.headroom);
  if (request.longest < 1) {
    refuse(cat("a ladder of ", request.longest, " tokens is not possible"),
           "give --ctx, e.g. 128k");
  }

  const Reach reach = method_row(request.extension.method).reach;
  if (!request.near && reach == Reach::unchanged) {
    const std::string& name = request.extension.method;
    refuse(cat(join_method_name(name, Growth::elastic), " is not possible: ", name,
               " is the same at every length"),
           "give --method none, or a method that grows, e.g. --method elastic:pro");
  }

  Extension untouched;
  Ladder ladder;
  ladder.extension_ = request.extension;
  ladder.rung_step_ = request.rung_step;
  ladder.headroom_ = request.headroom;
  const std::int64_t window = geometry.train_length;
  const bool by_length = reach == Reach::length;
  ladder.rungs_.push_back({window, make_plan(geometry, untouched)});
  if (request.near) {
    check_near(*request.near, geometry, request);
    ladder.near_ = request.near;
    ladder.has_single_factor_ = one_factor(far_plan(geometry, request, request.longest));
  }
  for (int k = 1; ladder.longest() < request.longest; ++k) {
    const double grown = double(window) * std::pow(request.rung_step, k);
    const std::int64_t length =
        grown < double(request.longest) ? std::llround(grown) : request.longest;
    if (length <= ladder.longest()) continue;  // a window of a few tokens
    if (request.near) {
      const NearPart& near = *request.near;
      const Plan plan = far_plan(geometry, request, length);
      while (ladder.longest() < length) {
        const std::int64_t border = border_at(near, ladder.longest() + 1);
        const double still = ladder.has_single_factor_ ? 1 / plan.factor().front() : 1;
        ladder.rungs_.push_back({std::min(length, border + near.length + near.step - 1), plan,
                                 border, std::llround(double(border) * (1 - still))});
      }
      continue;
    }
    Extension e = request.extension;
    e.length = std::llround(request.headroom * double(length));
    if (!by_length) e.scale = request.headroom * double(length) / double(window);
    ladder.rungs_.push_back({length, make_plan(geometry, e)});
  }
  return ladder;
}

Ladder make_ladder(const Plan& plan, std::int64_t longest) {
  if (longest < 1) refuse(cat("a ladder of ", longest, " tokens is not possible"), "give --ctx");
  Ladder ladder;
  ladder.extension_ = plan.extension();
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
