// SPDX-License-Identifier: Apache-2.0
// Ladder: which plan is in force at which length of a sequence. A static extension is a ladder with
// one rung; an elastic one leaves the model untouched inside its window and then grows.
#pragma once

#include <cstdint>
#include <vector>

#include "mrrope/plan.h"

namespace mrrope {

struct Rung {
  std::int64_t length = 0;  // tokens: the plan holds up to and including this length
  Plan plan;
};

struct LadderRequest {
  Extension extension;       // its scale and length are set per rung
  double rung_step = 1.19;   // lengths grow by this much from rung to rung; above 1
  double headroom = 1.0;     // scale = headroom * rung length / window; at least 1
  std::int64_t longest = 0;  // tokens: the last rung ends here
};

class Ladder {
 public:
  const std::vector<Rung>& rungs() const noexcept { return rungs_; }
  bool elastic() const noexcept { return rungs_.size() > 1; }
  std::int64_t longest() const noexcept { return rungs_.back().length; }

  // The rung in force for a sequence of this many tokens. Throws Error (usage) past the last rung.
  std::size_t rung_at(std::int64_t length) const;

  // 0 for a ladder made from one plan.
  double rung_step() const noexcept { return rung_step_; }
  double headroom() const noexcept { return headroom_; }

 private:
  friend Ladder make_ladder(const Geometry&, const LadderRequest&);
  friend Ladder make_ladder(const Plan&, std::int64_t longest);

  std::vector<Rung> rungs_;
  double rung_step_ = 0;
  double headroom_ = 0;
};

// Rungs at window * step^k, the first with the model as shipped, the last clipped to `longest`.
// Throws Error (usage) on a step of 1 or less, headroom below 1 or a length of 0.
Ladder make_ladder(const Geometry& geometry, const LadderRequest& request);

// Throws Error (usage) below 1.
void check_headroom(double headroom);

// One rung that holds up to `longest` tokens.
Ladder make_ladder(const Plan& plan, std::int64_t longest);

}  // namespace mrrope
