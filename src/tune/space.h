// SPDX-License-Identifier: Apache-2.0
// What is searched: the power family with its ramp boundaries, temperature and headroom, for a
// ladder the rung step and how much queries are sharpened, and for one with a near part its length.
// The search also starts from every published method, or only compares a few likely plans.
#pragma once

#include "core/methods.h"

namespace mrrope::tune {

// Coordinates of a point, in this order. Boundaries are pair indices, rounded when a plan is made:
// the objective is a staircase along them, and a step of the search crosses several stairs.
enum Parameter : std::size_t {
  kPower,
  kLow,
  kHigh,
  kAttnCoef,
  kHeadroom,
  kRungStep,
  kSharpen,
  kNear
};
using Point = std::vector<double>;

struct SearchAxis {
  double lower, upper;
  double step;  // of the first moves of a local search
  // The start is spread over this part only, near the published methods; most of the rest is bad.
  double start_lower = lower, start_upper = upper;
};

struct Space {
  Geometry geometry;
  std::int64_t ctx = 0;  // the wanted length
  Growth growth = Growth::none;
  std::vector<SearchAxis> axes = {};  // five, for a ladder seven, with a near part eight
};

// Throws Error (usage) if ctx fits in the window, or the geometry has no middle to extend.
Space make_space(const Geometry& geometry, std::int64_t ctx, Growth growth);

struct Proposal {
  std::string name{};      // in tables: "pro", "pro x1.25", "found"
  std::string origin{};    // published, likely, given, start, refined
  MethodSpec method{};     // with headroom; of one that grows also with rung step and near part
  std::string notation{};  // the method as it was asked for, for any length
  Ladder ladder = {};
  std::string plan = {};            // digest of its file
  std::string numbers = {};         // digest of its numbers: equal for pro and power 1
  std::optional<Point> point = {};  // absent outside the family

  double headroom() const { return *method.parameters.headroom; }
};

// A point outside the bounds is moved to them; boundaries that cross are moved apart.
Proposal proposal_at(const Space& space, Point point, const std::string& origin);

// yarn, yarn-rotations, uni and pro, each with headroom 1 and 1.25: static or, in an elastic space,
// as ladders of the default step. In a space with a near part the default (`auto`), and with its
// near part and rungs pi, yarn, uni and pro for far keys, with headroom 1.25 and 1.6. Methods that
// do not fit the geometry are left out.
std::vector<Proposal> published(const Space& space);

// What is used where no method is named.
Proposal unnamed(const Space& space);

// `auto`, and contexts with a near part that were best on one model or another, the likeliest
// first: short and long near parts, with and without headroom and sharper queries.
std::vector<Proposal> likely(const Space& space);

// A plan made for this or another model: its parameters, at this space's length.
// Throws Error (usage) if it is a list of factors for another model.
Proposal from_plan(const Space& space, const Ladder& ladder);

// Evenly spread over the bounds: an additive recurrence, started at random by the seed.
std::vector<Point> spread(const Space& space, std::size_t count, std::uint64_t seed);

// The same parameters at another length of the same model.
Proposal at_length(const Space& space, const Proposal& proposal, std::int64_t ctx);

// Local search without derivatives: NLopt's BOBYQA. An evaluation costs a pass over long texts, so
// the fewer the better: BOBYQA builds a quadratic model from 2n + 1 of them, where simplex methods
// need several times as many. It also respects bounds, takes a step size for each axis and draws no
// random numbers. Its first steps cross several stairs along the boundaries, so that the staircase
// looks smooth; it ends when a step is a fraction of that.
//
// Calls f until the search converges or f returns nullopt. Values must be finite. f keeps track of
// the best. Throws Error (failed) if NLopt reports a failure of its own.
void refine(const std::vector<SearchAxis>& axes, std::vector<double> start,
            const std::function<std::optional<double>(const std::vector<double>&)>& f);

}  // namespace mrrope::tune
