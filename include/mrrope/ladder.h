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
};

struct NearPart {
  std::int64_t length = 0;  // W: at least so many tokens are near
  std::int64_t step = 0;    // w: the border moves by so many tokens, so fewer than W + w are near

  bool operator==(const NearPart&) const = default;
};

struct LadderRequest {
  Extension extension;       // its scale and length are set per rung
  double rung_step = 1.19;   // lengths grow by this much from rung to rung; above 1
  double headroom = 1.0;     // scale = headroom * rung length / window; at least 1
  std::int64_t longest = 0;  // tokens: the last rung ends here
  // Scales become headroom * border / (window - W - w), and the temperature is 1 unless given.
  std::optional<NearPart> near = std::nullopt;
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

  // 0 for a ladder made from one plan.
  double rung_step() const noexcept { return rung_step_; }
  double headroom() const noexcept { return headroom_; }

  const std::optional<NearPart>& near() const noexcept { return near_; }
  // Far keys keep their rotation while the scale does, and queries are shifted: all pairs share a
  // factor.
  bool has_single_factor() const noexcept { return has_single_factor_; }
  // Whether sequences on these rungs can be computed together: with a near part queries and new
  // keys are rotated unmodified on all of them, each for its own shifted position.
  bool can_batch_together(std::size_t rung, std::size_t other) const noexcept {
    return rung == other || near_.has_value();
  }

 private:
  friend Ladder make_ladder(const Geometry&, const LadderRequest&);
  friend Ladder make_ladder(const Plan&, std::int64_t longest);

  std::vector<Rung> rungs_;
  Extension extension_;
  double rung_step_ = 0;
  double headroom_ = 0;
  std::optional<NearPart> near_;
  bool has_single_factor_ = false;
};

// Rungs at window * step^k, the first with the unmodified model, the last clipped to `longest`.
// With a near part each of them is cut where the border moves. Throws Error (usage) on a step of 1
// or less, headroom below 1, a length of 0, a near part that does not fit in the window, or a
// method whose factors do not follow from a scale.
Ladder make_ladder(const Geometry& geometry, const LadderRequest& request);

// Throws Error (usage) below 1.
void check_headroom(double headroom);

// Each place of the border is a rung with a plan of its own.
inline constexpr std::int64_t kMostBorders = 4096;

// Up to so many windows far:NAME has a short near part, no headroom and one rung.
inline constexpr double kFewWindows = 4;
// Its headroom beyond: of 1.25, 1.6 and 2 it found the most needles on MrRoPE Tiny, for 0.6 % in
// perplexity.
inline constexpr double kFarHeadroom = 1.6;
// The near part, headroom and rung step of far:NAME where none are given, for this window and
// length. docs/defaults.md has the evidence.
LadderRequest far_defaults(std::int64_t window, std::int64_t longest);
// The rung step that reaches so many windows in one rung.
double one_rung(double windows);

// One rung that holds up to `longest` tokens.
Ladder make_ladder(const Plan& plan, std::int64_t longest);

// The distance at which a query at position i sees a key at position j <= i in one pair: the angle
// between their rotations over the pair's trained theta.
double seen_distance(const Ladder& ladder, std::int64_t i, std::int64_t j, std::size_t pair);

}  // namespace mrrope
