// SPDX-License-Identifier: Apache-2.0
// Typed, checked access to one object of a config.json.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/source.h"
#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope {

// Typed access to one object of the file. A key may have several names, the first present one
// counts; null is absent. Whatever does not fit is an Error (corrupt) that names key and value.
class ConfigKeys {
 public:
  using json = nlohmann::json;
  using Names = std::initializer_list<const char*>;

  ConfigKeys(const json& object, std::string where) : object_(&object), where_(std::move(where)) {}

  const std::string& where() const { return where_; }

  [[noreturn]] void corrupt(const std::string& message) const { mrrope::corrupt(where_, message); }

  const json* find(Names names, std::string* found = nullptr) const {
    for (const char* name : names) {
      const auto at = object_->find(name);
      if (at == object_->end() || at->is_null()) continue;
      if (found) *found = name;
      return &*at;
    }
    return nullptr;
  }
  bool has(Names names) const { return find(names) != nullptr; }

  std::optional<std::int64_t> integer(Names names, std::int64_t low, std::int64_t high) const {
    std::string name;
    const json* value = find(names, &name);
    if (!value) return std::nullopt;
    return integer(name, *value, low, high);
  }
  std::int64_t required(Names names, std::int64_t low, std::int64_t high,
                        std::int64_t otherwise) const {
    const auto value = integer(names, low, high);
    if (!value && otherwise <= 0) corrupt(cat("has no ", *names.begin()));
    return value.value_or(otherwise);
  }
  std::optional<double> real(Names names) const {
    std::string name;
    const json* value = find(names, &name);
    if (!value) return std::nullopt;
    if (!value->is_number()) wrong_type(name, *value, "a number");
    return value->get<double>();
  }
  bool flag(Names names) const {
    std::string name;
    const json* value = find(names, &name);
    if (!value) return false;
    if (!value->is_boolean()) wrong_type(name, *value, "true or false");
    return value->get<bool>();
  }
  std::string text(Names names) const {
    std::string name;
    const json* value = find(names, &name);
    if (!value) return {};
    if (!value->is_string()) wrong_type(name, *value, "a string");
    return value->get<std::string>();
  }
  std::optional<ConfigKeys> object(Names names) const {
    std::string name;
    const json* value = find(names, &name);
    if (!value) return std::nullopt;
    if (!value->is_object()) wrong_type(name, *value, "an object");
    return ConfigKeys(*value, cat(where_, ": ", name));
  }
  std::vector<double> reals(Names names) const {
    std::vector<double> out;
    each(names, [&](const std::string& name, const json& v) {
      if (!v.is_number()) wrong_type(name, v, "a number");
      out.push_back(v.get<double>());
    });
    return out;
  }
  // A number counts as a list of one.
  std::vector<int> integers(Names names, std::int64_t low, std::int64_t high) const {
    std::vector<int> out;
    each(names, [&](const std::string& name, const json& v) {
      out.push_back(int(integer(name, v, low, high)));
    });
    return out;
  }
  std::vector<std::string> texts(Names names) const {
    std::vector<std::string> out;
    each(names, [&](const std::string& name, const json& v) {
      if (!v.is_string()) wrong_type(name, v, "a string");
      out.push_back(v.get<std::string>());
    });
    return out;
  }

  bool empty() const { return object_->empty(); }
  auto items() const { return object_->items(); }

 private:
  [[noreturn]] void wrong_type(const std::string& name, const json& value,
                               const char* wanted) const {
    const std::string text = value.is_string()       ? shown(value.get_ref<const std::string&>())
                             : value.is_structured() ? cat("an ", value.type_name())
                                                     : value.dump();
    corrupt(cat(name, " is ", text, ", not ", wanted));
  }

  std::int64_t integer(const std::string& name, const json& value, std::int64_t low,
                       std::int64_t high) const {
    // Some files write 4096.0.
    const bool whole =
        value.is_number_float() && std::floor(value.get<double>()) == value.get<double>();
    if (!value.is_number_integer() && !whole) wrong_type(name, value, "a whole number");
    const double size = value.get<double>();
    if (size < double(low) || size > double(high)) {
      corrupt(cat(name, " is ", value.dump(), ", not between ", low, " and ", high));
    }
    return whole ? std::int64_t(size) : value.get<std::int64_t>();
  }

  template <typename Do>
  void each(Names names, Do&& action) const {
    std::string name;
    const json* value = find(names, &name);
    if (!value) return;
    if (!value->is_array()) {
      action(name, *value);
      return;
    }
    if (value->size() > std::size_t{65536}) {
      corrupt(cat(name, " has ", value->size(), " entries, more than any model"));
    }
    for (std::size_t i = 0; i < value->size(); ++i) action(cat(name, "[", i, "]"), (*value)[i]);
  }

  const json* object_;
  std::string where_;
};

}  // namespace mrrope
