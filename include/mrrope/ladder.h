// SPDX-License-Identifier: Apache-2.0
// Ladder: which plan is in force at which length of a sequence. A static extension is a ladder with
// one rung; an elastic one leaves the model untouched inside its window and then grows. A ladder
// with a near part does too, and beyond the window it changes far keys alone: the last tokens are
// seen at their true distance, a key at position j before the border b from position i at
// (i - b) + (b - j) / factor.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "mrrope/plan.h"

namespace mrrope {

struct Rung {
  std::int64_t length = 0;  // tokens: the plan holds up to and including this length
  Plan plan;
  // With a near part: keys at positions before the border are far, and the plan is theirs alone.
  std::int64_t border = 0;
  // With a near part and one factor for all pairs: everything else is rotated for position - shift,
  // so that no rotation is longer than the window, and far keys stay where they are while the
  // factor does. It is border * (1 - 1 / factor), rounded: far keys are seen up to half a token
  // off.
  std::int64_t shift = 0;
  // Multiplies the rotated part of queries, which spread over more keys the longer the text is:
  // (ln n / ln window)^(sharpen * log2(n / window)), n being the last length with this plan; 1
  // inside the window.
  double sharpness = 1;
};

struct NearPart {
  std::int64_t length = 0;  // W: at least so many tokens are near
  std::int64_t step = 0;    // w: the border moves by so many tokens, so fewer than W + w are near

  bool operator==(const NearPart&) const = default;
};

class Ladder {
 public:
  const std::vector<Rung>& rungs() const& noexcept { return rungs_; }
  std::vector<Rung> rungs() && { return std::move(rungs_); }
  bool elastic() const noexcept { return rungs_.size() > 1; }
  std::int64_t longest() const noexcept { return rungs_.back().length; }

  // The rung in force for a sequence of this many tokens. Throws Error (usage) past the last rung.
  std::size_t rung_at(std::int64_t length) const;

  // What was asked for. The rungs beyond the window have it, each with a scale of its own.
  const Extension& extension() const noexcept { return extension_; }

  Growth growth() const noexcept {
    return near_ ? Growth::far : rung_step_ > 0 ? Growth::elastic : Growth::none;
  }
  // Both 0 for a ladder made from one plan.
  double rung_step() const noexcept { return rung_step_; }
  double headroom() const noexcept { return headroom_; }
  double sharpen() const noexcept { return sharpen_; }

  const std::optional<NearPart>& near() const noexcept { return near_; }
  // All pairs share a factor, so far keys keep their rotation while the scale does, and queries are
  // shifted.
  bool has_single_factor() const noexcept { return has_single_factor_; }
  // Whether sequences on these rungs can be computed in one batch: with a near part queries and new
  // keys are rotated unmodified on all of them, each for its own shifted position; the queries of
  // one batch have one sharpness.
  bool can_batch_together(std::size_t rung, std::size_t other) const noexcept {
    return rung == other || (near_ && rungs_[rung].sharpness == rungs_[other].sharpness);
  }

 private:
  friend Ladder make_ladder(const Plan&, std::int64_t longest);
  friend struct LadderMaker;

  std::vector<Rung> rungs_;
  Extension extension_;
  double rung_step_ = 0;
  double headroom_ = 0;
  double sharpen_ = 0;
  std::optional<NearPart> near_;
  bool has_single_factor_ = false;
};

// From a method to numbers. How far it reaches is given by ctx (tokens; 0: not given) or scale;
// only dynamic-ntk uses both. A static method has one rung. One that grows has rungs at window *
// rung_step^k, the first with the model unmodified, the last clipped to ctx; with a near part each
// of them is cut where the border moves. Throws Error (usage) where something is missing, is not
// used by the method or does not fit the geometry.
Ladder make_ladder(const Geometry& geometry, const MethodSpec& method, std::int64_t ctx,
                   std::optional<double> scale = std::nullopt);

// One rung that holds up to `longest` tokens; 0: the length that the plan was made for.
Ladder make_ladder(const Plan& plan, std::int64_t longest = 0);

// The distance at which a query at position i sees a key at position j <= i in one pair: the angle
// between their rotations over the pair's trained theta.
double seen_distance(const Ladder& ladder, std::int64_t i, std::int64_t j, std::size_t pair);

}  // namespace mrrope
