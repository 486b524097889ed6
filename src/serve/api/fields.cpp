// SPDX-License-Identifier: Apache-2.0
#include "serve/api/fields.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>

#include "base/json.h"
#include "base/text.h"
#include "mrrope/error.h"
#include "serve/memory_reserve.h"

namespace mrrope::serve {

namespace {

// What the readers of a body need while and after it is parsed: copies of parts of it, and what
// nlohmann allocates to destroy these.
std::size_t spare_for(std::size_t body) { return (std::size_t{1} << 20) + 16 * body; }

}  // namespace

void refuse(const std::string& field, const std::string& why, const std::string& code) {
  throw ApiError(400, cat("'", field, "' ", why), field, code);
}

std::string shown(const ordered_json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return cat("a list of ", value.size());
  if (value.is_string() && value.get_ref<const std::string&>().size() > 40) return "a long string";
  return value.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

// Complete before it has a value, so that its destructor runs whatever is thrown.
ParsedBody::ParsedBody(std::string_view body, const BodyLimits& limits) : ParsedBody() {
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
    throw ApiError(400, error.what(), {}, "invalid_json");
  }
  if (!root_.is_object()) {
    throw ApiError(400, cat("the body must be a JSON object, not ", shown(root_)), {},
                   "invalid_json");
  }
}

ParsedBody::~ParsedBody() { release(root_); }

Value Value::at(const char* name) const {
  static const ordered_json absent;
  std::string path = path_.empty() ? name : path_ + "." + name;
  if (!json_->is_object()) return {absent, std::move(path)};
  const auto found = json_->find(name);
  return {found == json_->end() ? absent : *found, std::move(path)};
}

Value Value::operator[](std::size_t index) const {
  return {(*json_)[index], cat(path_, "[", index, "]")};
}

void Value::refuse_type(const std::string& wanted) const {
  if (!*this) refuse("is missing: it must be " + wanted);
  refuse(cat("must be ", wanted, ", not ", shown(*json_)));
}

std::string Value::text() const {
  if (!json_->is_string()) refuse_type("a string");
  return json_->get<std::string>();
}

bool Value::flag() const {
  if (!json_->is_boolean()) refuse_type("true or false");
  return json_->get<bool>();
}

double Value::number(double low, double high) const {
  if (!json_->is_number()) refuse_type("a number");
  const double v = json_->get<double>();
  if (!(v >= low && v <= high)) refuse_type(cat("between ", low, " and ", high));
  return v;
}

std::int64_t Value::whole(std::int64_t low, std::int64_t high) const {
  const double v = number(static_cast<double>(low), static_cast<double>(high));
  if (v != std::floor(v)) refuse_type("a whole number");
  return static_cast<std::int64_t>(v);
}

const Value& Value::object() const {
  if (!json_->is_object()) refuse_type("an object");
  return *this;
}

const Value& Value::list() const {
  if (!json_->is_array()) refuse_type("a list");
  return *this;
}

Token token_of(const ordered_json& value, const char* field) {
  if (!value.is_number_integer() || value < 0 || value > std::numeric_limits<Token>::max()) {
    refuse(field, cat("must list tokens as whole numbers from 0, not ", shown(value)));
  }
  return value.get<Token>();
}

}  // namespace mrrope::serve
