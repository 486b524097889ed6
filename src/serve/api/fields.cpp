// SPDX-License-Identifier: Apache-2.0
#include "serve/api/fields.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>

#include "base/json.h"
#include "base/json_release.h"
#include "base/text.h"
#include "mrrope/error.h"
#include "serve/memory_reserve.h"

namespace mrrope::serve {

namespace {

constexpr int kBad = 400;

// What the readers of a body need while and after it is parsed: copies of parts of it, and what
// nlohmann allocates to destroy these.
std::size_t spare_for(std::size_t body) { return (std::size_t{1} << 20) + 16 * body; }

}  // namespace

void refuse(const std::string& field, const std::string& why, const std::string& code) {
  throw ApiError(kBad, cat("'", field, "' ", why), field, code);
}

std::string shown(const ordered_json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return cat("a list of ", value.size());
  if (value.is_string() && value.get_ref<const std::string&>().size() > 40) return "a long string";
  return value.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

// Complete before it has a value, so that its destructor runs whatever is thrown.
Fields::Fields(std::string_view body, const BodyLimits& limits) : Fields(ordered_json(), {}) {
  // Where memory is short the request fails here, not when it can no longer fail. malloc() leaves
  // the reserve alone.
  const std::unique_ptr<void, decltype(&std::free)> spare(std::malloc(spare_for(body.size())),
                                                          &std::free);
  if (!spare || !fill_memory_reserve()) throw std::bad_alloc();
  JsonLimits json_limits;
  json_limits.bytes = limits.bytes;
  json_limits.values = limits.values;
  try {
    root_ = parse_ordered_json(body, "the body", json_limits);
  } catch (const Error& error) {
    throw ApiError(kBad, error.what(), {}, "invalid_json");
  }
  if (!root_.is_object()) {
    throw ApiError(kBad, cat("the body must be a JSON object, not ", shown(root_)), {},
                   "invalid_json");
  }
}

Fields::Fields(ordered_json object, std::string path)
    : root_(std::move(object)), path_(std::move(path)) {}

Fields::~Fields() { release(root_); }

void Fields::bad(const std::string& name, const std::string& why, const std::string& code) const {
  refuse(path_ + name, why, code);
}

const ordered_json* Fields::find(const char* name) {
  asked_.insert(name);
  const auto it = root_.find(name);
  return it == root_.end() || it->is_null() ? nullptr : &*it;
}

std::optional<std::string> Fields::text(const char* name) {
  const ordered_json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) bad(name, cat("must be a string, not ", shown(*value)));
  return value->get<std::string>();
}

bool Fields::flag(const char* name, bool otherwise) {
  const ordered_json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) bad(name, cat("must be true or false, not ", shown(*value)));
  return value->get<bool>();
}

std::optional<double> Fields::number(const char* name, double low, double high) {
  const ordered_json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) bad(name, cat("must be a number, not ", shown(*value)));
  const double v = value->get<double>();
  if (!(v >= low && v <= high)) {
    bad(name, cat("must be between ", low, " and ", high, ", not ", shown(*value)));
  }
  return v;
}

std::optional<std::int64_t> Fields::whole(const char* name, std::int64_t low, std::int64_t high) {
  const auto v = number(name, static_cast<double>(low), static_cast<double>(high));
  if (!v) return std::nullopt;
  if (*v != std::floor(*v)) bad(name, cat("must be a whole number, not ", *v));
  return static_cast<std::int64_t>(*v);
}

const ordered_json* Fields::object(const char* name) {
  const ordered_json* value = find(name);
  if (value != nullptr && !value->is_object()) {
    bad(name, cat("must be an object, not ", shown(*value)));
  }
  return value;
}

void Fields::only(const char* name, const ordered_json& neutral, const char* why) {
  const ordered_json* value = find(name);
  if (value == nullptr || *value == neutral) return;
  if ((value->is_array() || value->is_object()) && value->empty()) return;
  if (value->is_string() && value->get_ref<const std::string&>().empty()) return;
  bad(name, cat("is not supported: ", why), "unsupported_parameter");
}

std::vector<std::string> Fields::ignored() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : root_.items()) {
    constexpr std::size_t kMostNames = 32;
    constexpr std::size_t kLongestName = 64;
    if (asked_.count(name) != 0 || names.size() == kMostNames) continue;
    names.push_back(name.size() <= kLongestName ? path_ + name : "(a long name)");
  }
  std::sort(names.begin(), names.end());
  return names;
}

Token token_of(const ordered_json& value, const char* field) {
  if (!value.is_number_integer() || value < 0 || value > std::numeric_limits<Token>::max()) {
    refuse(field, cat("must list tokens as whole numbers from 0, not ", shown(value)));
  }
  return value.get<Token>();
}

}  // namespace mrrope::serve
