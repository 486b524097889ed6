// SPDX-License-Identifier: Apache-2.0
// The paper's study of the borders: perplexity at one length for every low, every high or every
// pair of them, under several methods, on the user's model.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/tasks/perplexity/perplexity.h"

namespace mrrope {

struct SweepRequest {
  std::vector<std::string> methods;
  // Pairs. Empty: the method's own border. At least one of the two is given.
  std::vector<int> low, high;
  std::int64_t ctx = 0;
  double headroom = 1;
};

// Betas that give a border: more than `from`, up to `to` for beta_fast; from `from`, below `to`
// for beta_slow. Infinite where every larger one does.
struct BetaInterval {
  double from = 0;
  double to = 0;
};
BetaInterval beta_fast_of(const Geometry& geometry, int low);   // (from, to]
BetaInterval beta_slow_of(const Geometry& geometry, int high);  // [from, to)
std::string beta_fast_text(const Geometry& geometry, int low);  // "(24.1, 27.8]"
std::string beta_slow_text(const Geometry& geometry, int high);

struct SweepPoint {
  std::string method;
  int low = 0;
  int high = 0;
  Estimate perplexity;
};

struct SweepResults {
  SweepRequest request;
  Geometry geometry;
  std::size_t documents = 0;
  std::vector<SweepPoint> points;  // by method, low, high; crossed borders are left out

  const SweepPoint* at(const std::string& method, std::optional<int> low,
                       std::optional<int> high) const;
};

// One row of a run per point. Throws Error (usage): no border to sweep, a method without borders,
// none that lie in order.
std::vector<MethodUnderTest> sweep_methods(const Geometry& geometry, const SweepRequest& request,
                                           std::vector<SweepPoint>& points);

SweepResults run_sweep(TimelineModel& model, const SweepRequest& request,
                       const std::vector<Document>& documents, RunFolder& folder,
                       Progress& progress);

nlohmann::ordered_json to_json(const SweepResults& results);

// One border swept: a line per border, a column per method. Both: a table per method. The betas
// behind each border stand beside it.
std::string to_text(const SweepResults& results);

// method, low, high, the four ends of the intervals, perplexity, stderr, n.
std::string to_csv(const SweepResults& results);

}  // namespace mrrope
