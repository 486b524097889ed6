// SPDX-License-Identifier: Apache-2.0
// Fields of JSON that anybody may have written.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace mrrope {

// Empty where there is none, or it is no text.
inline std::string text_at(const nlohmann::ordered_json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

}  // namespace mrrope
