// SPDX-License-Identifier: Apache-2.0
// Typed, checked access to one object of a JSON text.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/source.h"
#include "base/text.h"

namespace mrrope {

// A key may have several names, the first present one counts; null is absent. Whatever does not fit
// is an Error that names key and value.
class JsonKeys {
 public:
  using json = nlohmann::json;
  using Names = std::initializer_list<const char*>;

  // `where` begins every message. Throws if `object` is not one.
  JsonKeys(const json& object, std::string where, ErrorKind kind, std::string hint)
      : object_(&object), where_(std::move(where)), kind_(kind), hint_(std::move(hint)) {
    if (!object.is_object()) refuse("is not a JSON object");
  }

  const std::string& where() const { return where_; }

  // The same with what its keys are where this object does not state them.
  JsonKeys or_else(const json& defaults) const {
    JsonKeys out = *this;
    out.defaults_ = &defaults;
    return out;
  }

  [[noreturn]] void refuse(const std::string& message, const std::string& hint = {}) const {
    throw Error(kind_, cat(where_, ": ", message), hint.empty() ? hint_ : hint);
  }
  void refuse_if(bool wrong, const std::string& message, const std::string& hint = {}) const {
    if (wrong) refuse(message, hint);
  }

  const json* find(Names names, std::string* found = nullptr) const {
    const json* value = find_in(*object_, names, found);
    return value || !defaults_ ? value : find_in(*defaults_, names, found);
  }
  bool has(Names names) const { return find(names) != nullptr; }
  bool states(Names names) const { return find_in(*object_, names, nullptr) != nullptr; }

  // Absent keys give nullopt, an empty text or an empty list.
  std::optional<std::int64_t> integer(Names names, std::int64_t low, std::int64_t high) const {
    return first(names, whole_between(low, high));
  }
  std::optional<double> real(Names names) const { return first(names, a_number()); }
  std::optional<bool> flag(Names names) const {
    return first(names, typed<bool>(&json::is_boolean, "true or false"));
  }
  std::string text(Names names) const { return first(names, a_text()).value_or(""); }
  std::optional<JsonKeys> object(Names names) const {
    return first<JsonKeys>(
        names, [&](const std::string& name, const json& value) { return item(value, name); });
  }
  // An object inside of this one.
  JsonKeys item(const json& value, const std::string& name) const {
    if (!value.is_object()) wrong_type(name, value, "an object");
    return {value, cat(where_, ": ", name), kind_, hint_};
  }
  // A single value counts as a list of one.
  std::vector<double> reals(Names names) const { return list<double>(names, a_number()); }
  std::vector<int> integers(Names names, std::int64_t low, std::int64_t high) const {
    return list<int>(names, whole_between(low, high));
  }
  std::vector<std::string> texts(Names names) const { return list<std::string>(names, a_text()); }

  // The same for keys that must be there.
  std::int64_t needed_integer(const char* name, std::int64_t low, std::int64_t high) const {
    return needed(name, integer({name}, low, high));
  }
  double needed_real(const char* name) const { return needed(name, real({name})); }
  std::string needed_text(const char* name) const { return needed(name, first({name}, a_text())); }
  JsonKeys needed_object(const char* name) const { return needed(name, object({name})); }

  // An integer with a value for its absence; where that is 0, the key must be there.
  int required(Names names, std::int64_t low, std::int64_t high, int otherwise) const {
    if (otherwise <= 0 && !has(names)) refuse(cat("has no ", *names.begin()));
    return integer_or(names, low, high, otherwise);
  }
  int integer_or(Names names, std::int64_t low, std::int64_t high, int otherwise) const {
    return int(integer(names, low, high).value_or(otherwise));
  }

  bool empty() const { return object_->empty(); }
  auto items() const { return object_->items(); }
  // Refuses every key but these.
  void allow_only(const std::vector<std::string>& known) const {
    for (const auto& [key, value] : items()) {
      if (mrrope::has(known, key)) continue;
      refuse(cat("has no key ", shown(key)), cat("the keys are ", joined(known, ", ")));
    }
  }

 private:
  static const json* find_in(const json& object, Names names, std::string* found) {
    for (const char* name : names) {
      const auto at = object.find(name);
      if (at == object.end() || at->is_null()) continue;
      if (found) *found = name;
      return &*at;
    }
    return nullptr;
  }

  [[noreturn]] void wrong_type(const std::string& name, const json& value,
                               const char* wanted) const {
    const std::string text = value.is_string()       ? shown(value.get_ref<const std::string&>())
                             : value.is_structured() ? cat("an ", value.type_name())
                                                     : value.dump();
    refuse(cat(name, " is ", text, ", not ", wanted),
           kind_ == ErrorKind::usage ? cat("give ", wanted, " for ", name) : hint_);
  }

  // Reads one value; its name is for messages.
  template <typename T>
  using Read = std::function<T(const std::string& name, const json& value)>;

  template <typename T>
  Read<T> typed(bool (json::*is)() const noexcept, const char* wanted) const {
    return [this, is, wanted](const std::string& name, const json& value) {
      if (!(value.*is)()) wrong_type(name, value, wanted);
      return value.get<T>();
    };
  }
  Read<double> a_number() const { return typed<double>(&json::is_number, "a number"); }
  Read<std::string> a_text() const { return typed<std::string>(&json::is_string, "a string"); }
  Read<std::int64_t> whole_between(std::int64_t low, std::int64_t high) const {
    return [this, low, high](const std::string& name, const json& value) {
      // Some files write 4096.0.
      const bool whole =
          value.is_number_float() && std::floor(value.get<double>()) == value.get<double>();
      if (!value.is_number_integer() && !whole) wrong_type(name, value, "a whole number");
      const auto size = value.get<double>();
      if (size < double(low) || size > double(high)) {
        refuse(cat(name, " is ", value.dump(), ", not between ", low, " and ", high));
      }
      return whole ? std::int64_t(size) : value.get<std::int64_t>();
    };
  }

  template <typename T>
  T needed(const char* name, std::optional<T> value) const {
    if (!value) refuse(cat("has no ", name));
    return *std::move(value);
  }
  template <typename T>
  std::optional<T> first(Names names, const Read<T>& read) const {
    std::string name;
    const json* value = find(names, &name);
    return value ? std::optional(read(name, *value)) : std::nullopt;
  }
  template <typename T, typename From>
  std::vector<T> list(Names names, const Read<From>& read) const {
    std::string name;
    const json* value = find(names, &name);
    if (!value) return {};
    if (!value->is_array()) return {T(read(name, *value))};
    if (value->size() > std::size_t{65536}) {
      refuse(cat(name, " has ", value->size(), " entries, more than any model"));
    }
    std::vector<T> out;
    for (std::size_t i = 0; i < value->size(); ++i) {
      out.push_back(T(read(cat(name, "[", i, "]"), (*value)[i])));
    }
    return out;
  }

  const json* object_;
  const json* defaults_ = nullptr;
  std::string where_;
  ErrorKind kind_;
  std::string hint_;
};

}  // namespace mrrope
