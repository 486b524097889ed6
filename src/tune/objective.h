// SPDX-License-Identifier: Apache-2.0
// What the search minimizes: mean log-perplexity over bands of length, minus a weight times the
// mean log-probability of planted answers (per token of the answer). Short bands count as much as
// long ones, so the cost inside the window counts too.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/stats/statistics.h"
#include "model/timeline_model.h"
#include "tune/search_text.h"

namespace mrrope::tune {

// A ladder on one text.
struct Measured {
  std::vector<double> bands;    // loss per token of each band, natural logarithm
  std::vector<double> answers;  // log-probability per token of each planted answer
  std::string failed;           // why there are no numbers; empty: there are some

  double log_perplexity() const;  // mean of the bands
  double retrieval() const;       // mean of the answers
  // Infinite where it failed.
  double objective(double weight) const;
};

// Ends of the bands: half the window, the window, and twice as much each time up to `length`.
std::vector<std::int64_t> band_ends(std::int64_t window, std::int64_t length);

// The model must have no timeline. Numbers that are not finite, and NanLogits, are data: `failed`
// says so. `between` is called with the tokens just computed.
Measured measure(TimelineModel& model, const Ladder& ladder, const SearchText& text,
                 std::int64_t batch, const std::function<void(std::int64_t)>& between);

nlohmann::ordered_json to_json(const Measured& measured);
Measured measured_from_json(const nlohmann::ordered_json& line);

}  // namespace mrrope::tune
