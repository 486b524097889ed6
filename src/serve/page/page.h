// SPDX-License-Identifier: Apache-2.0
// The server's own page: a conversation with the model, its place on the ladder, and the plan.
// Rungs count from 1 there.
#pragma once

#include <cstdint>
#include <string>

#include "mrrope/ladder.h"

namespace mrrope::serve {

struct PageFacts {
  std::string model;
  std::string method;
  std::int64_t context = 0;
  std::int64_t window = 0;
  bool chat = false;  // otherwise the page continues text
};

std::string serve_page(const PageFacts& facts, const Ladder& ladder);
std::string serve_style();
std::string serve_script();
// The values of a chart under the pointer, and the theme; shared with the report.
std::string serve_chart_script();

}  // namespace mrrope::serve
