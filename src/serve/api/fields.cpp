// SPDX-License-Identifier: Apache-2.0
#include "serve/api/fields.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <semaphore>

#include "base/json.h"
#include "base/text.h"

namespace mrrope::serve {

namespace {

std::counting_semaphore<> parsers{4};

// The reserve of memory.
constexpr std::size_t kChunk = std::size_t{4} << 20;
std::array<std::atomic<void*>, 8> reserve = {};
std::atomic<bool> has_reserve = false;

void spend_reserve() {
  const std::size_t first = std::uncaught_exceptions() > 0 ? 0 : reserve.size() / 2;
  for (std::size_t i = first; i < reserve.size(); ++i) {
    if (void* const chunk = reserve[i].exchange(nullptr)) {
      ::munmap(chunk, kChunk);
      return;  // `new` tries again
    }
  }
  throw std::bad_alloc();
}

// True if it is full.
bool fill_reserve() {
  if (!has_reserve) return true;
  for (std::atomic<void*>& place : reserve) {
    if (place.load() != nullptr) continue;
    void* const chunk = ::mmap(nullptr, kChunk, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED) return false;
    void* none = nullptr;
    if (!place.compare_exchange_strong(none, chunk)) ::munmap(chunk, kChunk);
  }
  return true;
}

}  // namespace

void install_memory_reserve() {
  has_reserve = true;
  fill_reserve();
  std::set_new_handler(spend_reserve);
}

void refuse(const std::string& field, const std::string& why, const std::string& code) {
  throw ApiError(400, cat("'", field, "' ", why), field, code);
}

std::string shown(const ordered_json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return cat("a list of ", value.size());
  if (value.is_string() && value.get_ref<const std::string&>().size() > 40) return "a long string";
  return value.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

ParsedBody::ParsedBody(std::string_view body, const BodyLimits& limits)
    : turn_((parsers.acquire(), &parsers), [](void*) { parsers.release(); }) {
  // What its readers need while and after it is parsed: copies of parts of it, and what nlohmann
  // allocates to destroy these. Where memory is short the request fails here, not when it can no
  // longer fail. malloc() leaves the reserve alone.
  const std::size_t size = (std::size_t{1} << 20) + 16 * body.size();
  const std::unique_ptr<void, decltype(&std::free)> spare(std::malloc(size), &std::free);
  if (!spare || !fill_reserve()) throw std::bad_alloc();
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

Value Value::at(const char* name) const {
  static const ordered_json absent;
  std::string path = path_.empty() ? name : path_ + "." + name;
  if (!json_->is_object()) return {absent, std::move(path)};
  const auto found = json_->find(name);
  return {found == json_->end() ? absent : *found, std::move(path)};
}

void Value::refuse_type(const std::string& wanted) const {
  if (!*this) refuse("is missing: it must be " + wanted);
  refuse(cat("must be ", wanted, ", not ", shown(*json_)));
}

std::string Value::text() const {
  if (!json_->is_string()) refuse_type("a string");
  return json_->get<std::string>();
}

std::string Value::choice(const std::vector<std::string>& choices) const {
  if (has(choices, text())) return text();
  refuse(cat("is ", shown(*json_), ": choose one of ", joined(choices, ", ")));
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
  const double v = number(double(low), double(high));
  if (v != std::floor(v)) refuse_type("a whole number");
  return std::int64_t(v);
}

const Value& Value::object() const {
  if (!json_->is_object()) refuse_type("an object");
  return *this;
}

const Value& Value::list() const {
  if (!json_->is_array()) refuse_type("a list");
  return *this;
}

std::vector<Value> Value::entries(std::size_t most, const char* what) const {
  const std::size_t size = list().json().size();
  if (size > most) refuse(cat("lists ", size, " ", what, ": at most ", most));
  std::vector<Value> all;
  for (std::size_t i = 0; i < size; ++i) all.emplace_back((*json_)[i], cat(path_, "[", i, "]"));
  return all;
}

Token token_of(const ordered_json& value, const char* field) {
  if (!value.is_number_integer() || value < 0 || value > std::numeric_limits<Token>::max()) {
    refuse(field, cat("must list tokens as whole numbers from 0, not ", shown(value)));
  }
  return value.get<Token>();
}

std::int64_t read_length(const Value& length) {
  const std::int64_t tokens = length.whole(-1, kMaxTokens);
  if (tokens == 0) length.refuse("must be -1 or at least 1, not 0");
  return tokens < 0 ? kMaxTokens : tokens;
}

void read_schema(const Value& schema, const std::string& field, CompletionRequest& request) {
  refuse_if(!request.schema.empty(), request.schema_field,
            cat("is given beside '", field, "': give one of them"));
  static const ordered_json any = {{"type", "object"}};
  refuse_if(schema && !schema.json().is_object(), field,
            cat("must be a JSON schema, not ", shown(schema.json())));
  request.schema = (schema.json().empty() ? any : schema.json()).dump();
  request.schema_field = field;
}

void read_response_format(const Value& format, bool nested, CompletionRequest& request) {
  const Value type = format.object().at("type");
  if (!type || type.json() == "text") return;
  if (type.json() == "json_object") return read_schema(format.at("schema"), format.path(), request);
  format.refuse_if(type.json() != "json_schema", cat("is of type ", shown(type.json()),
                                                     ": choose text, json_object or json_schema"));
  const Value holder = nested ? format.at("json_schema") : format;
  if (!holder.at("schema")) holder.refuse("must be an object with a schema");
  read_schema(holder.at("schema"), format.path(), request);
}

}  // namespace mrrope::serve
