// SPDX-License-Identifier: Apache-2.0
// The values of a JSON body, read strictly: one that cannot be used is refused by its path.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "model/tokenizer.h"
#include "serve/api/error.h"
#include "serve/api/request.h"

namespace mrrope::serve {

// Members keep their order: a JSON schema lists its properties in the order of the answer.
using ordered_json = nlohmann::ordered_json;

// Throws ApiError (400) about a field: its path and the reason.
[[noreturn]] void refuse(const std::string& field, const std::string& why,
                         const std::string& code = {});

// Enough of a value to recognize it.
std::string shown(const ordered_json& value);

// A value inside a body and its path ("tools[0].function"), which refusals name. Null counts as
// absent: many clients send it for a field that is not set.
class Value {
 public:
  Value(const ordered_json& json, std::string path) : json_(&json), path_(std::move(path)) {}

  explicit operator bool() const { return !json_->is_null(); }
  const ordered_json& json() const { return *json_; }
  const std::string& path() const { return path_; }
  std::size_t size() const { return json_->size(); }

  // A member; absent if there is none.
  Value at(const char* name) const;
  Value operator[](std::size_t index) const;

  // These refuse any other type. The range includes both ends.
  std::string text() const;
  bool flag() const;
  double number(double low, double high) const;
  std::int64_t whole(std::int64_t low, std::int64_t high) const;
  const Value& object() const;
  const Value& list() const;

  [[noreturn]] void refuse(const std::string& why, const std::string& code = {}) const {
    serve::refuse(path_, why, code);
  }
  [[noreturn]] void refuse_type(const std::string& wanted) const;

 private:
  const ordered_json* json_;
  std::string path_;
};

// A body as a JSON object. Its memory is given back without allocating.
class ParsedBody {
 public:
  ParsedBody(std::string_view body, const BodyLimits& limits);
  ParsedBody(const ParsedBody&) = delete;
  ParsedBody& operator=(const ParsedBody&) = delete;
  ~ParsedBody();

  Value at(const char* name) const { return root().at(name); }
  Value root() const { return {root_, {}}; }

 private:
  ParsedBody() = default;
  ordered_json root_;
};

Token token_of(const ordered_json& value, const char* field);

}  // namespace mrrope::serve
