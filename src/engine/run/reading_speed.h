// SPDX-License-Identifier: Apache-2.0
// How long a model takes to read a text, from a short measurement.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/timeline_model.h"

namespace mrrope::engine {

// How fast a model reads: seconds for a token at the start of a text, and what every token before
// it adds.
struct ReadingSpeed {
  double start = 0;
  double slope = 0;
};
// From the seconds of two neighbouring chunks, the second and third of a text. Other work on the
// machine can make the third look slow, and a long text multiplies that: the slope is at most what
// attention can cost.
ReadingSpeed reading_speed(const Model& model, std::int64_t chunk, double second, double third);
// Times three chunks on the loaded model, of a text of at most `longest` tokens; note: is told so
// before.
ReadingSpeed measure_speed(TimelineModel& timelines, const Model& model, std::int64_t longest,
                           const std::function<void(const std::string&)>& note);
// Seconds to read a text of each of these lengths.
double seconds_to_read(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths);
// "about 3 min 05 s at 512 tokens/s, ..." for texts of these lengths.
std::string time_text(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths,
                      const char* ending = "");

}  // namespace mrrope::engine
