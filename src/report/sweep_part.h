// SPDX-License-Identifier: Apache-2.0
// What the report shows of a sweep of the ramp boundaries.
#pragma once

#include <nlohmann/json.hpp>

#include "report/figures.h"

namespace mrrope::report {

constexpr const char* kSweepSection = "Sweep of the ramp boundaries";

// From results.json of mrrope sweep. Throws Error (corrupt).
RecordedSweep sweep_from_json(const nlohmann::ordered_json& results);

// One boundary swept: a line per method. Both: a heat map per method, all with the same shades.
Figure sweep_figure(const RecordedSweep& sweep);

// A row per point, with the betas of its boundaries.
DataTable sweep_table(const RecordedSweep& sweep);

// The point of lowest perplexity; null: nothing measured.
const RecordedSweep::Point* sweep_best(const RecordedSweep& sweep);

// "pro with low 10 and high 38 has the lowest perplexity: 4.32 +- 0.65".
std::string sweep_text(const RecordedSweep& sweep);

}  // namespace mrrope::report
