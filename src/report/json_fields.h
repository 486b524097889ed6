// SPDX-License-Identifier: Apache-2.0
// Fields of JSON from files that may be damaged or hostile.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace mrrope::report {

// Empty if the field is missing or not a text.
std::string text_at(const nlohmann::ordered_json& object, const char* key);

// NaN if the field is missing or not a number.
double value_at(const nlohmann::ordered_json& object, const char* key);

// 0 if the field is missing or cannot be a count.
std::int64_t count_at(const nlohmann::ordered_json& object, const char* key);

// Throw Error (corrupt) if there is no finite number, or no list of a sensible size.
double number_at(const nlohmann::ordered_json& object, const char* key);
const nlohmann::ordered_json& list_at(const nlohmann::ordered_json& object, const char* key);

// Throws Error (corrupt): what is wrong with results.json.
[[noreturn]] void refuse_results(const std::string& what);

}  // namespace mrrope::report
