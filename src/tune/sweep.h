// SPDX-License-Identifier: Apache-2.0
// The paper's study of the ramp boundaries: perplexity at one length for every low, every high or
// every combination of them, under several methods, on the user's model.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/tasks/perplexity/perplexity.h"

namespace mrrope::tune {

struct SweepRequest {
  std::vector<std::string> methods;
  // Pairs. Empty: the method's own boundary. At least one of the two is given.
  std::vector<int> low, high;
  std::int64_t ctx = 0;  // what the plans are made for, and the tokens read of each document
  double headroom = 1;
};

// "5..15" or one number, every `step` pairs. Empty text: no pairs. Throws Error (usage).
std::vector<int> parse_pairs(const std::string& text, int step, const std::string& flag);

// The betas that give a boundary. Infinite or 0 where there is no end.
struct BetaInterval {
  double from = 0;
  double to = 0;
};

struct SweepPoint {
  std::string method;
  int low = 0;
  int high = 0;
  BetaInterval beta_fast;  // (from, to]
  BetaInterval beta_slow;  // [from, to)
  eval::Estimate perplexity;
};
std::string text_of_beta_fast(const SweepPoint& point);  // "(24.1, 27.8]"
std::string text_of_beta_slow(const SweepPoint& point);

struct SweepResults {
  SweepRequest request;
  std::int64_t window = 0;
  std::size_t documents = 0;
  std::vector<SweepPoint> points;  // by method, low, high; without those where low >= high
  std::vector<std::string> notes;  // of the run folder, for the user

  const SweepPoint* at(const std::string& method, std::optional<int> low,
                       std::optional<int> high) const;
};

// One method under test per point. Throws Error (usage): no boundary to sweep, a method without
// boundaries, no low below a high.
std::vector<eval::MethodUnderTest> sweep_methods(const Geometry& geometry,
                                                 const SweepRequest& request,
                                                 std::vector<SweepPoint>& points);

// folder: run.json and results.json of the sweep, and below it ppl/, the perplexity run that holds
// the journal. Empty: everything stays in memory.
SweepResults run_sweep(TimelineModel& model, const SweepRequest& request,
                       const std::vector<eval::Document>& documents, const std::string& folder,
                       const eval::RunInfo& info, eval::Progress& progress);

nlohmann::ordered_json to_json(const SweepResults& results);

// One boundary swept: a line per boundary, a column per method. Both: a table per method. Each
// boundary is shown with its betas.
std::string to_text(const SweepResults& results);

// method, low, high, the four ends of the intervals, perplexity, stderr, n.
std::string to_csv(const SweepResults& results);

}  // namespace mrrope::tune
