// SPDX-License-Identifier: Apache-2.0
// How long a model takes to read a text: measured whenever it reads one, and kept for the next call
// on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/llama/local.h"

namespace mrrope::engine {

// Seconds for a token at the start of a text, and what every token before it adds.
struct ReadingSpeed {
  double start = 0;
  double slope = 0;
};

// From parts of texts: a straight line through their seconds per token.
class SpeedMeter {
 public:
  // `count` tokens from `position` on. Short parts say little and are left out.
  void add(std::int64_t position, std::int64_t count, double seconds);
  // Nothing before enough was read. Other work on the machine can make a later part look slow, and
  // a long text multiplies that: the slope is at most what attention can cost.
  std::optional<ReadingSpeed> speed(const Model& model) const;

 private:
  double tokens_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;  // sums, weighted by tokens
  bool warm_ = false;  // a short first part tells how long loading takes
};

// What was kept of this model under these options on this machine.
std::optional<ReadingSpeed> kept_speed(const Model& model, const LocalOptions& options);
// Where nothing can be written, nothing is kept.
void keep_speed(const Model& model, const LocalOptions& options, const ReadingSpeed& speed);

// What each token before it adds to the time of one, as a share of that of the first: as kept, or
// where nothing is, a guess.
double growth(const Model& model, const LocalOptions& options);

// Reads up to 2048 tokens, or as many as fit. A model that keeps its speed keeps this one too.
ReadingSpeed measure_speed(TimelineModel& timelines);

// Seconds to read a text of each of these lengths.
double seconds_to_read(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths);
// "about 3 min 05 s at 512 tokens/s" for texts of these lengths; ending: after the time. Without a
// speed, how to measure it.
std::string time_text(const std::optional<ReadingSpeed>& speed,
                      const std::vector<std::int64_t>& lengths, const std::string& ending = "");

}  // namespace mrrope::engine
