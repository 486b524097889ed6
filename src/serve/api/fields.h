// SPDX-License-Identifier: Apache-2.0
// The fields of a JSON body, read strictly. A field with a value that cannot be used is refused by
// name; those that are never looked up are listed as ignored.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer.h"
#include "serve/api/error.h"
#include "serve/api/request.h"

namespace mrrope::serve {

// Members keep their order: a JSON schema lists its properties in the order of the answer.
using ordered_json = nlohmann::ordered_json;

// Throws ApiError (400) about a field: its name and the reason.
[[noreturn]] void refuse(const std::string& field, const std::string& why,
                         const std::string& code = {});

// Enough of a value to recognize it.
std::string shown(const ordered_json& value);

class Fields {
 public:
  Fields(std::string_view body, const BodyLimits& limits);
  // Those of an object inside a body; `path` precedes names in messages.
  Fields(ordered_json object, std::string path);
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;
  ~Fields();

  // Null counts as absent: many clients send it for a field that is not set.
  const ordered_json* find(const char* name);

  std::optional<std::string> text(const char* name);
  bool flag(const char* name, bool otherwise = false);
  std::optional<double> number(const char* name, double low, double high);
  std::optional<std::int64_t> whole(const char* name, std::int64_t low, std::int64_t high);
  const ordered_json* object(const char* name);

  // Refuses a field that is not supported unless its value changes nothing: the neutral one, null,
  // or an empty string, list or object.
  void only(const char* name, const ordered_json& neutral, const char* why);

  // Throws about a field of this object.
  [[noreturn]] void bad(const std::string& name, const std::string& why,
                        const std::string& code = {}) const;

  std::vector<std::string> ignored() const;

 private:
  ordered_json root_;
  std::string path_;
  std::set<std::string, std::less<>> asked_;
};

Token token_of(const ordered_json& value, const char* field);

}  // namespace mrrope::serve
