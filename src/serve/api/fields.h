// SPDX-License-Identifier: Apache-2.0
// The values of a JSON body, read strictly: one that cannot be used is refused by its path. And the
// readers of fields that routes have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "serve/api/request.h"

namespace mrrope::serve {

// Members keep their order: a JSON schema lists its properties in the order of the answer.
using ordered_json = nlohmann::ordered_json;

constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;
constexpr int kMaxLogprobs = 20;

// Throws ApiError (400) about a field: its path and the reason.
[[noreturn]] void refuse(const std::string& field, const std::string& why,
                         const std::string& code = {});

inline void refuse_if(bool wrong, const std::string& field, const std::string& why,
                      const std::string& code = {}) {
  if (wrong) refuse(field, why, code);
}

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

  // A member; absent if there is none.
  Value at(const char* name) const;

  // These refuse any other type. The range includes both ends.
  std::string text() const;
  bool flag() const;
  double number(double low, double high) const;
  std::int64_t whole(std::int64_t low, std::int64_t high) const;
  const Value& object() const;
  const Value& list() const;
  // The entries of a list that has at most so many; what: their name.
  std::vector<Value> entries(std::size_t most, const char* what) const;
  std::string choice(const std::vector<std::string>& choices) const;  // one of these

  // If it is absent: another value.
  std::string text_or(const char* otherwise) const { return *this ? text() : otherwise; }
  bool flag_or(bool otherwise) const { return *this ? flag() : otherwise; }

  [[noreturn]] void refuse(const std::string& why, const std::string& code = {}) const {
    serve::refuse(path_, why, code);
  }
  void refuse_if(bool wrong, const std::string& why, const std::string& code = {}) const {
    if (wrong) refuse(why, code);
  }
  [[noreturn]] void refuse_type(const std::string& wanted) const;

 private:
  const ordered_json* json_;
  std::string path_;
};

// A body as a JSON object. Its memory is given back without allocating. Any number of threads may
// parse bodies, but only a few at a time: a body of numbers takes eight times its size while it is
// being read. A thread must not have two.
class ParsedBody {
 public:
  ParsedBody(std::string_view body, const BodyLimits& limits);
  ParsedBody(const ParsedBody&) = delete;

  Value at(const char* name) const { return root().at(name); }
  Value root() const { return {root_, {}}; }

 private:
  const std::shared_ptr<void> turn_;  // its turn among the threads, until its end
  ordered_json root_;
  const Releaser<ordered_json> end_{root_};
};

// Sets address space aside for the ends of requests: nlohmann's destructors allocate, and where
// that fails the process ends. From now on `new` takes from it where nothing else is left, all of
// it while an exception unwinds, half of it otherwise; a body is read only while it is full.
void install_memory_reserve();

Token token_of(const ordered_json& value, const char* field);

// By the table of fields: sets what the accepted ones ask for, refuses those that are not
// supported, and lists the rest in `ignored`.
void read_fields(const Value& object, Route route, CompletionRequest& request);

// The answer: its length (-1 is up to the end of the context) and form.
std::int64_t read_length(const Value& length);
void read_schema(const Value& schema, const std::string& field, CompletionRequest& request);
// The schema is in a member json_schema (nested), or beside the type.
void read_response_format(const Value& format, bool nested, CompletionRequest& request);
void read_messages(const Value& messages, CompletionRequest& request);

// What bodies of chats have beside the fields of the table.
using ReadBody = void(const Value& body, const BodyLimits& limits, CompletionRequest& request);
ReadBody read_chat, read_responses, read_ollama, read_anthropic;

}  // namespace mrrope::serve
