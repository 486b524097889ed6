// SPDX-License-Identifier: Apache-2.0
#include "engine/run/reading_speed.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::engine {

ReadingSpeed reading_speed(const Model& model, std::int64_t chunk, double second, double third) {
  double products = 0;  // of attention, for a token and one before it
  for (const Layer& layer : model.layers) {
    if (layer.kind == LayerKind::windowed || layer.kind == LayerKind::recurrent) continue;
    products += double(model.heads) * (model.key_length + model.value_length);
  }
  // One of them takes at most as long as those of 8 bytes of weights.
  const double n = double(chunk);
  const double max =
      second / n * 8 * products / double(std::max<std::uint64_t>(model.weight_bytes, 1));
  const double slope = std::clamp((third - second) / (n * n), 0.0, max);
  return {std::max(second / n - slope * 1.5 * n, second / n / 10), slope};
}

ReadingSpeed measure_speed(TimelineModel& timelines, const Model& model, std::int64_t longest,
                           const std::function<void(const std::string&)>& note) {
  // llama.cpp rounds contexts up.
  const std::int64_t chunk =
      std::min<std::int64_t>(512, std::min(longest, timelines.context_length()) / 3);
  if (chunk < 1) throw Error(ErrorKind::usage, "the context is too short to estimate the time");
  note(cat("timing the model on ", 3 * chunk, " tokens"));
  const std::vector<Token> tokens(std::size_t(chunk), timelines.bos().value_or(0));
  const auto timeline = timelines.timeline();
  double seconds[3] = {};  // the first one warms up
  for (double& s : seconds) {
    const auto start = std::chrono::steady_clock::now();
    timeline->append_scored(tokens);
    s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return reading_speed(model, chunk, seconds[1], seconds[2]);
}

double seconds_to_read(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths) {
  double total = 0;
  for (const std::int64_t length : lengths) {
    total += double(length) * (speed.start + speed.slope * double(length) / 2);
  }
  return total;
}

std::string time_text(const ReadingSpeed& speed, const std::vector<std::int64_t>& lengths,
                      const char* ending) {
  const double seconds = seconds_to_read(speed, lengths);
  double tokens = 0;
  for (const std::int64_t length : lengths) tokens += double(length);
  return cat("about ", duration_text(seconds), ending, ", at ",
             significant(seconds > 0 ? tokens / seconds : 1 / speed.start, 3),
             " tokens/s (timed just now; other work on this machine makes it slower)");
}

}  // namespace mrrope::engine
