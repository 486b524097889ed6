// SPDX-License-Identifier: Apache-2.0
// The server's counters in Prometheus' text format.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "serve/schedule/scheduler.h"

namespace mrrope::serve {

// responses: how many, by status.
std::string metrics_text(const SchedulerCounts& counts,
                         const std::map<int, std::uint64_t>& responses, double uptime_seconds);

}  // namespace mrrope::serve
