// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace mrrope::test {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace mrrope::test
