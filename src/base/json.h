// SPDX-License-Identifier: Apache-2.0
// Strict JSON. Refused, each with the byte offset: more text, depth or values than the limits
// allow, a key given twice in one object, anything but UTF-8, numbers too large for a double, NaN,
// comments and text after the end.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/files/source.h"

namespace mrrope {

struct JsonLimits {
  std::uint64_t bytes = std::uint64_t{16} << 20;
  int depth = 64;                  // objects and arrays inside each other
  std::size_t values = 4'000'000;  // each takes 16 bytes or more, however short its text is
};

// `name` appears in messages. Throws Error (corrupt).
nlohmann::json parse_json(std::string_view text, const std::string& name,
                          const JsonLimits& limits = {});
// The same with members in the order of the text, for files that are written again.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& name,
                                          const JsonLimits& limits = {});

// A whole file. One that is over the limit is refused by its size, unread.
nlohmann::json read_json(const std::filesystem::path& path, const JsonLimits& limits = {});

// The text of a whole source, if it is within the limit.
std::string read_text(const Source& source, const JsonLimits& limits);

// An integer of a file. Throws an exception of the JSON library unless it is one and fits; get()
// would cast any number, which is undefined for those that do not.
template <typename T, typename Json>
T whole(const Json& value) {
  using Limits = std::numeric_limits<T>;
  if (value.is_number_unsigned()) {
    const auto number = value.template get<std::uint64_t>();
    if (number <= std::uint64_t(Limits::max())) return T(number);
  } else if (value.is_number_integer()) {
    const auto number = value.template get<std::int64_t>();
    const bool fits = number >= 0 ? std::uint64_t(number) <= std::uint64_t(Limits::max())
                                  : std::is_signed_v<T> && number >= std::int64_t(Limits::min());
    if (fits) return T(number);
  }
  throw nlohmann::json::type_error::create(
      302, std::string("type must be a whole number in range, but is ") + value.type_name(),
      &value);
}

// The end of large values where memory is short: nlohmann's destructor moves all that a value holds
// into a list of its own, and where there is no memory for that list the process ends.
// Empties a value without allocating. Recurses: for values of limited depth.
template <typename Json>
void release(Json& value) noexcept {
  if (auto* const array = value.template get_ptr<typename Json::array_t*>()) {
    for (Json& child : *array) release(child);
    array->clear();
  } else if (auto* const object = value.template get_ptr<typename Json::object_t*>()) {
    for (auto& member : *object) release(member.second);
    object->clear();
  }
}

// Releases a value at the end of its scope; declare it after the value.
template <typename Json>
struct Releaser {
  Json& value;
  ~Releaser() { release(value); }
};
template <typename Json>
Releaser(Json&) -> Releaser<Json>;

// On one line, or indented. Bytes that are not UTF-8 become U+FFFD, where dump() would throw.
template <typename Json>
std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// null for NaN and infinities, which JSON does not have.
nlohmann::ordered_json json_or_null(double value);

// Members of an object that may be missing or of another type: then empty, NaN, and 0, which is
// also given for what cannot be a count.
template <typename Json>
std::string text_at(const Json& object, const char* key) {
  const auto it = object.find(key);  // end() if it is not an object
  return it != object.end() && it->is_string() ? it->template get<std::string>() : std::string();
}
template <typename Json>
double value_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->template get<double>() : std::nan("");
}
std::int64_t count_at(const nlohmann::ordered_json& object, const char* key);

// JSON must be UTF-8; what a model writes need not be. Other bytes become U+FFFD.
std::string valid_utf8(const std::string& text);

}  // namespace mrrope
