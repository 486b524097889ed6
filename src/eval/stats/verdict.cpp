// SPDX-License-Identifier: Apache-2.0
#include "eval/stats/verdict.h"

#include <cmath>

#include "base/text.h"

namespace mrrope::eval {

namespace {

bool rises(const PairedDifference& step) {
  const Estimate& d = step.mean_difference;
  if (!(d.value > std::log1p(kHoldTolerance))) return false;
  return d.n < 2 || d.value > 2 * d.error;
}

std::string band_text(const VerdictInput& in, std::size_t i) {
  return cat("tokens ", i == 0 ? "0" : length_text(in.lengths[i - 1]), " to ",
             length_text(in.lengths[i]));
}

double percent(const PairedDifference& d) { return d.percent().value; }

}  // namespace

Verdict judge(const VerdictInput& in) {
  Verdict verdict;
  verdict.method = in.method;
  if (!in.untouched) {
    verdict.reason =
        "the untouched model was not measured (add none to --methods, or a method that grows, such "
        "as auto)";
    return verdict;
  }
  if (in.reference_length == 0) {
    verdict.reason = cat("no length inside the window was measured (add ", length_text(in.window),
                         " to --lengths)");
    return verdict;
  }
  verdict.cost = paired_where_both(in.own, *in.untouched);
  if (in.lengths.back() <= in.window) {
    verdict.reason =
        cat("no length beyond the window of ", length_text(in.window), " was measured");
    return verdict;
  }
  verdict.judged = in.failed;
  verdict.good_to = in.is_untouched ? in.reference_length : 0;
  for (std::size_t i = 0; i < in.lengths.size(); ++i) {
    if (in.lengths[i] <= in.window) continue;
    const PairedDifference level = paired_where_both(in.bands[i], *in.untouched);
    if (level.mean_difference.n == 0) {
      verdict.reason = cat("no document was measured to ", length_text(in.lengths[i]));
      return verdict;
    }
    verdict.judged = true;
    PairedDifference step;  // above the lowest band before this one
    std::size_t lowest = i;
    for (std::size_t j = 0; j < i; ++j) {
      const PairedDifference candidate = paired_where_both(in.bands[i], in.bands[j]);
      if (lowest == i || candidate.mean_difference.value > step.mean_difference.value) {
        step = candidate;
        lowest = j;
      }
    }
    if (rises(step) && level.mean_difference.value > std::log1p(kHoldTolerance)) {
      verdict.reason = cat(band_text(in, i), " are ", fixed(percent(step), 0), " % above ",
                           band_text(in, lowest));
      return verdict;
    }
    if (level.mean_difference.value <= std::log1p(kLevelTolerance)) {
      verdict.good_to = in.lengths[i];
      verdict.reason.clear();
    } else {
      verdict.reason = cat(band_text(in, i), " are ", fixed(percent(level), 0),
                           " % above the untouched model at ", length_text(in.reference_length));
    }
  }
  verdict.to_the_end = verdict.good_to == in.lengths.back();
  return verdict;
}

}  // namespace mrrope::eval
