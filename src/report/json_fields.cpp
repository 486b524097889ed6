// SPDX-License-Identifier: Apache-2.0
#include "report/json_fields.h"

#include <cmath>
#include <limits>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::report {

using nlohmann::ordered_json;

namespace {
constexpr std::size_t kMax = 100000;  // entries of a list
}

std::string text_at(const ordered_json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

double value_at(const ordered_json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>()
                                               : std::numeric_limits<double>::quiet_NaN();
}

std::int64_t count_at(const ordered_json& object, const char* key) {
  const double value = value_at(object, key);
  return value > 0 && value < 9e15 ? std::int64_t(value) : 0;
}

double number_at(const ordered_json& object, const char* key) {
  const double value = value_at(object, key);
  if (!std::isfinite(value)) refuse_results(cat("\"", key, "\" is not a number"));
  return value;
}

const ordered_json& list_at(const ordered_json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_array()) refuse_results(cat("\"", key, "\" is not a list"));
  if (it->size() > kMax) refuse_results(cat("\"", key, "\" has ", it->size(), " entries"));
  return *it;
}

void refuse_results(const std::string& what) {
  throw Error(ErrorKind::corrupt, cat("results.json is damaged: ", what),
              "run the same command again: what is in the journal is not computed twice");
}

}  // namespace mrrope::report
