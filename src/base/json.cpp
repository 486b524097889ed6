// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <cmath>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/text.h"

namespace mrrope {
namespace {

using nlohmann::json;

constexpr const char* kSomethingElse = "the file is damaged or is something else: fetch it again";

// Builds values from nlohmann's events. The parser itself does not recurse, so depth costs no
// stack.
template <typename Json>
class Builder {
 public:
  using number_integer_t = typename Json::number_integer_t;
  using number_unsigned_t = typename Json::number_unsigned_t;
  using number_float_t = typename Json::number_float_t;
  using string_t = typename Json::string_t;
  using binary_t = typename Json::binary_t;

  Builder(const std::string& name, const JsonLimits& limits) : name_(name), limits_(limits) {}
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  ~Builder() {
    for (Frame& frame : stack_) {
      release(frame.value);
      for (auto& member : frame.members) release(member.second);
    }
    release(result_);
  }

  bool null() { return value(nullptr); }
  bool boolean(bool v) { return value(v); }
  bool number_integer(number_integer_t v) { return value(v); }
  bool number_unsigned(number_unsigned_t v) { return value(v); }
  bool number_float(number_float_t v, const string_t&) { return value(v); }
  bool string(string_t& v) { return value(std::move(v)); }
  bool binary(binary_t&) { return false; }  // JSON text has none

  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& v) {
    Frame& frame = stack_.back();
    const bool fresh = kOrdered ? frame.seen.insert(v).second : !frame.value.contains(v);
    if (!fresh) {
      corrupt(name_, cat("the key ", shown(v), " is given twice"), "remove one of the two");
    }
    frame.key = std::move(v);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without its prefix
    std::string text = error.what();
    if (const auto end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
    throw Error(
        ErrorKind::corrupt,
        cat(name_, ": not valid JSON at byte ", position, ": ", printable(text.substr(0, 200))),
        "the file is cut short or damaged: fetch it again, or check it with "
        "python3 -m json.tool");
  }

  Json take() { return std::move(result_); }

 private:
  // An ordered object is a list: looking a key up takes time in proportion to its size.
  static constexpr bool kOrdered = !std::is_same_v<Json, json>;

  struct Frame {
    Json value;
    std::string key{};  // of the current member
    std::unordered_set<std::string> seen{};
    // Of an ordered object until it is complete: as it grew, it would copy each of them.
    std::vector<std::pair<std::string, Json>> members{};
  };
  static_assert(std::is_nothrow_move_constructible_v<Frame>);

  bool open(Json container) {
    if (int(stack_.size()) >= limits_.depth) {
      corrupt(name_, cat("nested deeper than ", limits_.depth, " levels"), kSomethingElse);
    }
    stack_.push_back({std::move(container)});
    return true;
  }

  bool close() {
    Frame& frame = stack_.back();
    if constexpr (kOrdered) {
      if (frame.value.is_object()) {
        auto& object = frame.value.template get_ref<typename Json::object_t&>();
        auto& list = static_cast<typename Json::object_t::Container&>(object);
        list.reserve(frame.members.size());
        for (auto& [key, v] : frame.members) list.emplace_back(std::move(key), std::move(v));
      }
    }
    Json done = std::move(frame.value);
    stack_.pop_back();
    return value(std::move(done));
  }

  bool value(Json v) {
    try {
      return add(v);
    } catch (...) {
      release(v);
      throw;
    }
  }

  bool add(Json& v) {
    if (++values_ > limits_.values) {
      corrupt(name_, cat("more than ", limits_.values, " values"), kSomethingElse);
    }
    if (stack_.empty()) {
      result_ = std::move(v);
      return true;
    }
    Frame& frame = stack_.back();
    if (frame.value.is_array()) {
      frame.value.push_back(std::move(v));
      return true;
    }
    if constexpr (kOrdered) {
      frame.members.emplace_back(frame.key, std::move(v));
    } else {
      frame.value[frame.key] = std::move(v);
    }
    return true;
  }

  const std::string& name_;
  const JsonLimits& limits_;
  std::vector<Frame> stack_;
  std::size_t values_ = 0;
  Json result_;
};

void check_size(std::uint64_t size, const std::string& name, const JsonLimits& limits) {
  if (size > limits.bytes) {
    throw Error(ErrorKind::corrupt,
                cat(name, " has ", size, " bytes; at most ", limits.bytes, " are read"),
                kSomethingElse);
  }
}

template <typename Json>
Json parse(std::string_view text, const std::string& name, const JsonLimits& limits) {
  check_size(text.size(), name, limits);
  Builder<Json> builder(name, limits);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace

json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  return parse<json>(text, name, limits);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& name,
                                          const JsonLimits& limits) {
  return parse<nlohmann::ordered_json>(text, name, limits);
}

std::string read_text(const Source& source, const JsonLimits& limits) {
  check_size(source.size(), source.name(), limits);
  std::string text(std::size_t(source.size()), '\0');
  source.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

json read_json(const std::filesystem::path& path, const JsonLimits& limits) {
  const Source source = Source::open(path);
  return parse_json(read_text(source, limits), source.name(), limits);
}

nlohmann::ordered_json json_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

std::int64_t count_at(const nlohmann::ordered_json& object, const char* key) {
  const double value = value_at(object, key);
  return value > 0 && value < 9e15 ? std::int64_t(value) : 0;
}

std::string valid_utf8(const std::string& text) {
  using Handler = json::error_handler_t;
  return json::parse(json(text).dump(-1, ' ', false, Handler::replace)).get<std::string>();
}

}  // namespace mrrope
