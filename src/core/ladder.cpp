// SPDX-License-Identifier: Apache-2.0
#include "mrrope/ladder.h"

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

}  // namespace

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
           "1.19 is usual, 2 means few rungs");
  }
  check_headroom(request.headroom);
  if (request.longest < 1) {
    refuse(cat("a ladder of ", request.longest, " tokens is not possible"),
           "give --ctx, e.g. 128k");
  }

  Extension untouched;
  Ladder ladder;
  ladder.rung_step_ = request.rung_step;
  ladder.headroom_ = request.headroom;
  const std::int64_t window = geometry.train_length;
  const bool by_length = method_row(request.extension.method).reach == Reach::length;
  ladder.rungs_.push_back({window, make_plan(geometry, untouched)});
  for (int k = 1; ladder.longest() < request.longest; ++k) {
    const double grown = double(window) * std::pow(request.rung_step, k);
    const std::int64_t length =
        grown < double(request.longest) ? std::llround(grown) : request.longest;
    if (length <= ladder.longest()) continue;  // a window of a few tokens
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
  ladder.rungs_.push_back({longest, plan});
  return ladder;
}

}  // namespace mrrope
