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
//
// No verdict without data: the band after the window must have been measured, or have failed.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "eval/tasks/perplexity/perplexity.h"

namespace mrrope::eval {

namespace {

constexpr double kLevelTolerance = 0.25;
constexpr double kHoldTolerance = 0.10;

bool rises(const PairedDifference& step) {
  const Estimate& d = step.mean_difference;
  if (!(d.value > std::log1p(kHoldTolerance))) return false;
  return d.n < 2 || d.value > 2 * d.error;
}

std::string band_text(const ResultTable& table, std::size_t i) {
  return cat("tokens ", i == 0 ? "0" : length_text(table.lengths[i - 1]), " to ",
             length_text(table.lengths[i]));
}

std::string percent(const PairedDifference& d) { return fixed(d.percent().value, 0) + " %"; }

// Losses are natural logarithms per token, by document.
const UnitValues& losses(const ResultTable& table, const std::string& method, std::int64_t length,
                         const char* metric) {
  static const UnitValues none;
  const ResultRow* row = table.find(method, length, metric);
  return row != nullptr ? row->units : none;
}

// The untouched model, or one that grows, which is the same inside the window.
const MethodRow* baseline(const ResultTable& table) {
  const auto& methods = table.methods;
  auto found =
      std::find_if(methods.begin(), methods.end(), [](const MethodRow& m) { return m.untouched; });
  if (found == methods.end()) {
    found =
        std::find_if(methods.begin(), methods.end(), [](const MethodRow& m) { return m.grows; });
  }
  return found != methods.end() ? &*found : nullptr;
}

}  // namespace

Verdict judge(const ResultTable& table, const MethodRow& method, bool failed) {
  Verdict verdict;
  verdict.method = method.method;
  const MethodRow* base = baseline(table);
  if (base == nullptr) {
    verdict.reason =
        "the untouched model was not measured (add none to --method, or a method that grows, such "
        "as auto)";
    return verdict;
  }
  const std::int64_t reference = table.reference_length();
  if (reference == 0) {
    verdict.reason = cat("no length inside the window was measured (add ",
                         length_text(table.window), " to --lengths)");
    return verdict;
  }
  const UnitValues& untouched = losses(table, base->method, reference, kPerplexityMetric);
  verdict.cost =
      paired_where_both(losses(table, method.method, reference, kPerplexityMetric), untouched);
  if (table.lengths.back() <= table.window) {
    verdict.reason =
        cat("no length beyond the window of ", length_text(table.window), " was measured");
    return verdict;
  }
  verdict.judged = failed;
  verdict.good_to = method.untouched ? reference : 0;
  std::vector<UnitValues> bands;
  for (const std::int64_t length : table.lengths) {
    bands.push_back(losses(table, method.method, length, kPerplexityBand));
  }
  for (std::size_t i = 0; i < table.lengths.size(); ++i) {
    if (table.lengths[i] <= table.window) continue;
    const PairedDifference level = paired_where_both(bands[i], untouched);
    if (level.mean_difference.n == 0) {
      verdict.reason = cat("no document was measured to ", length_text(table.lengths[i]));
      return verdict;
    }
    verdict.judged = true;
    PairedDifference step;  // above the lowest band before this one
    std::size_t lowest = i;
    for (std::size_t j = 0; j < i; ++j) {
      const PairedDifference candidate = paired_where_both(bands[i], bands[j]);
      if (lowest == i || candidate.mean_difference.value > step.mean_difference.value) {
        step = candidate;
        lowest = j;
      }
    }
    if (rises(step) && level.mean_difference.value > std::log1p(kHoldTolerance)) {
      verdict.reason =
          cat(band_text(table, i), " are ", percent(step), " above ", band_text(table, lowest));
      return verdict;
    }
    if (level.mean_difference.value <= std::log1p(kLevelTolerance)) {
      verdict.good_to = table.lengths[i];
      verdict.reason.clear();
    } else {
      verdict.reason = cat(band_text(table, i), " are ", percent(level),
                           " above the untouched model at ", length_text(reference));
    }
  }
  verdict.to_the_end = verdict.good_to == table.lengths.back();
  return verdict;
}

}  // namespace mrrope::eval
