// SPDX-License-Identifier: Apache-2.0
// The server's own page: a conversation with the model, where it stands on its ladder, and the
// plan.
#pragma once

#include <cstdint>
#include <string>

#include "mrrope/ladder.h"

namespace mrrope {

struct PageFacts {
  std::string model;
  std::string method;
  std::int64_t context = 0;
  std::int64_t window = 0;
  bool chat = false;  // else the page continues text
};

std::string serve_page(const PageFacts& facts, const Ladder& ladder);
std::string serve_style();
// Values of charts under the pointer, and the theme: the report's own.
std::string serve_chart_script();

}  // namespace mrrope
