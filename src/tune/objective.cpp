// SPDX-License-Identifier: Apache-2.0
#include "tune/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::tune {

using nlohmann::ordered_json;

namespace {

double average(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

std::vector<double> band_losses(const SearchText& text, const std::vector<double>& scores,
                                const std::vector<std::int64_t>& ends) {
  std::vector<double> losses;
  std::int64_t begin = 1;  // the first token is predicted by nothing
  for (const std::int64_t band_end : ends) {
    const std::int64_t end = std::min(band_end, std::int64_t(scores.size()));
    double sum = 0;
    std::int64_t count = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      if (text.planted[std::size_t(i)]) continue;
      sum -= scores[std::size_t(i)];
      ++count;
    }
    if (count > 0) losses.push_back(sum / double(count));
    begin = std::max(begin, end);
  }
  return losses;
}

// On a fork where that is free; under a ladder whose last rung begins only now, on the timeline
// itself, which then forgets the question.
double ask(Timeline& timeline, const PlantedAnswer& asked, bool same_rung) {
  std::vector<double> scores;
  if (same_rung) {
    scores = timeline.fork()->append_scored(asked.question);
  } else {
    const std::int64_t end = timeline.length();
    scores = timeline.append_scored(asked.question);
    timeline.truncate(end);
  }
  return std::accumulate(scores.end() - std::ptrdiff_t(asked.answer), scores.end(), 0.0) /
         double(asked.answer);
}

}  // namespace

double Measured::log_perplexity() const {
  return failed.empty() ? average(bands) : std::numeric_limits<double>::infinity();
}

double Measured::retrieval() const {
  if (!failed.empty()) return -std::numeric_limits<double>::infinity();
  return answers.empty() ? 0 : average(answers);
}

double Measured::objective(double weight) const {
  if (!failed.empty()) return std::numeric_limits<double>::infinity();
  return log_perplexity() - weight * retrieval();
}

std::vector<std::int64_t> band_ends(std::int64_t window, std::int64_t length) {
  std::vector<std::int64_t> ends;
  for (std::int64_t n = std::max<std::int64_t>(2, window / 2); n < length; n *= 2) {
    ends.push_back(n);
  }
  ends.push_back(length);
  return ends;
}

Measured measure(TimelineModel& model, const Ladder& ladder, const SearchText& text,
                 std::int64_t batch, const std::function<void(std::int64_t)>& between) {
  Measured measured;
  const auto finite = [](double s) { return std::isfinite(s); };
  try {
    model.use(ladder);
    const auto timeline = model.timeline();
    std::vector<double> scores;
    while (scores.size() < text.tokens.size()) {
      const auto rest = std::span(text.tokens).subspan(scores.size());
      const auto part =
          timeline->append_scored(rest.first(std::min(rest.size(), std::size_t(batch))));
      scores.insert(scores.end(), part.begin(), part.end());
      between(std::int64_t(part.size()));
    }
    if (!std::all_of(scores.begin() + 1, scores.end(), finite)) {
      measured.failed = "a log-probability is not a finite number";
      return measured;
    }
    const std::int64_t window = model.facts().geometry.train_length;
    measured.bands = band_losses(text, scores, band_ends(window, text.length));
    const bool same_rung =
        ladder.rung_at(std::int64_t(text.tokens.size())) == ladder.rung_at(text.length);
    for (const PlantedAnswer& asked : text.asked) {
      measured.answers.push_back(ask(*timeline, asked, same_rung));
      between(std::int64_t(asked.question.size()));
    }
    if (!std::all_of(measured.answers.begin(), measured.answers.end(), finite)) {
      measured.failed = "the log-probability of an answer is not a finite number";
    }
  } catch (const NanLogits& e) {  // data about the plan, unlike a device that fails
    measured.failed = e.what();
  }
  return measured;
}

ordered_json to_json(const Measured& m) {
  if (!m.failed.empty()) return {{"failed", m.failed}};
  return {{"bands", m.bands}, {"answers", m.answers}};
}

Measured measured_from_json(const ordered_json& line) {
  Measured m;
  try {
    if (line.contains("failed")) {
      m.failed = line["failed"].get<std::string>();
    } else {
      m.bands = line.at("bands").get<std::vector<double>>();
      m.answers = line.at("answers").get<std::vector<double>>();
    }
  } catch (const ordered_json::exception& e) {
    throw Error(ErrorKind::corrupt, cat("a line of the journal is damaged: ", e.what()),
                "delete this line, or the folder");
  }
  if (m.failed.empty() && m.bands.empty()) {
    throw Error(ErrorKind::corrupt, "a line of the journal holds no bands",
                "delete this line, or the folder");
  }
  return m;
}

}  // namespace mrrope::tune
