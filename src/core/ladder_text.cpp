// SPDX-License-Identifier: Apache-2.0
#include "core/ladder_text.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace mrrope {

namespace {

// What positions are divided by, at most.
double compression(const Plan& plan) { return *std::ranges::max_element(plan.factor()); }

std::string times(double factor) { return significant(factor, factor < 9.95 ? 2 : 3) + "x"; }

// How far the model is as it was trained; 0: nowhere.
std::int64_t unmodified_to(const Ladder& ladder) {
  const Rung& first = ladder.rungs().front();
  const bool same = compression(first.plan) == 1 && first.plan.attention_scale() == 1;
  return same ? first.length : 0;
}

}  // namespace

std::string tokens_text(std::int64_t tokens) {
  std::string text = length_text(tokens);
  if (text.ends_with('k')) text.back() = 'K';
  if (text.ends_with('m')) text.back() = 'M';
  return text;
}

std::string ladder_summary(const Ladder& ladder) {
  const std::int64_t same = unmodified_to(ladder);
  const std::string compressed = "compressed " + times(compression(ladder.rungs().back().plan));
  if (same >= ladder.longest()) return "unmodified";
  return same == 0 ? compressed : cat("unmodified to ", tokens_text(same), ", then ", compressed);
}

std::string ladder_sentence(const Ladder& ladder) {
  const std::int64_t same = unmodified_to(ladder);
  const std::string most = times(compression(ladder.rungs().back().plan));
  if (same >= ladder.longest()) return cat("Unmodified up to ", tokens_text(same), ".");
  if (same == 0) return cat("Positions are compressed ", most, " at every length.");
  return cat("Unmodified up to ", tokens_text(same), ". Beyond, ",
             ladder.near() ? "distant text is" : "all text is", " compressed ",
             ladder.rungs()[1].plan.same_numbers(ladder.rungs().back().plan) ? "" : "up to ", most,
             ".");
}

std::string context_bar(const Ladder& ladder, std::int64_t length, std::size_t columns) {
  const std::int64_t longest = ladder.longest();
  const Rung& rung = ladder.rungs()[ladder.rung_at(std::clamp<std::int64_t>(length, 1, longest))];
  const double factor = compression(rung.plan);
  const std::int64_t far = factor == 1 ? 0 : std::min(length, ladder.near() ? rung.border : length);
  const auto column = [&](std::int64_t tokens) {
    return std::size_t(std::llround(double(tokens) / double(longest) * double(columns)));
  };
  std::string bar(columns, '.');
  std::fill_n(bar.begin(), column(length), '#');
  std::fill_n(bar.begin(), column(far), '=');
  std::string text = cat("[", bar, "] ", length, " of ", longest, " tokens\n");
  if (far > 0) text += cat("= ", far, " compressed ", times(factor), ", ");
  return text + cat("# ", length - far, " exact\n");
}

}  // namespace mrrope
