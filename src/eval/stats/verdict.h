// SPDX-License-Identifier: Apache-2.0
// How far a method can be trusted, by one rule.
//
// The rule looks at bands: the tokens between one measured length and the next. A method is good to
// length N (beyond the window) if
//   level: the band that ends at N has a perplexity at most 25 % above that of the untouched model
//          over its window (the longest measured length inside it), on the same documents; and
//   hold:  no band beyond the window up to N is above the lowest band before it by more than 10 %
//          and by more than two standard errors of the paired difference (with one document, which
//          gives no error, 10 % decides), unless it is within 10 % of the untouched model's own: an
//          elastic ladder is so good in its first bands that later ones are above them.
// Why bands: the mean over the first N tokens hides a collapse in its tail. Why two conditions:
// interpolation is steady but may be bad everywhere (level catches it); extrapolation is excellent
// until it breaks (hold catches it). The cost on short texts is not part of the rule. It is
// reported separately: the perplexity inside the window against the untouched model, paired. The
// untouched model is always good to its window.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "eval/stats/statistics.h"

namespace mrrope::eval {

constexpr double kLevelTolerance = 0.25;
constexpr double kHoldTolerance = 0.10;

struct Verdict {
  std::string method;
  bool judged = false;       // false: `reason` says what is missing
  std::int64_t good_to = 0;  // tokens; 0: no length beyond the window
  bool to_the_end = false;   // good_to is the longest length measured
  std::string reason;        // why not further
  PairedDifference cost;     // inside the window, against the untouched model
  Estimate divergence;       // KL from the untouched model there
};

// No verdict without data: the band after the window must have been measured, or have failed.
// Losses are natural logarithms per token, by document. untouched: the untouched model's loss over
// its window; own: this method's at the same length; bands[i]: this method's band that ends at
// lengths[i].
struct VerdictInput {
  std::string method;
  bool is_untouched = false;
  std::int64_t window = 0;
  std::vector<std::int64_t> lengths;
  std::vector<UnitValues> bands;
  std::int64_t reference_length = 0;    // 0: no measured length is inside the window
  std::optional<UnitValues> untouched;  // absent: not among the methods, nor any that grows
  UnitValues own;
  bool failed = false;  // a token had probability 0: missing bands are no lack of data
};

Verdict judge(const VerdictInput& input);

}  // namespace mrrope::eval
