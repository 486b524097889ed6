// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope {
namespace {

using nlohmann::json;

// Builds values from nlohmann's events, and hands finished members of the streamed object over
// instead of keeping them. The parser itself does not recurse, so depth costs no stack.
class Builder {
 public:
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  Builder(const std::string& name, const JsonLimits& limits, std::string_view inside,
          const JsonMember* member)
      : name_(name),
        max_depth_(limits.depth),
        values_left_(limits.values),
        inside_(inside),
        member_(member) {}

  bool null() { return value(nullptr); }
  bool boolean(bool v) { return value(v); }
  bool number_integer(number_integer_t v) { return value(v); }
  bool number_unsigned(number_unsigned_t v) { return value(v); }
  bool number_float(number_float_t v, const string_t&) { return value(v); }
  bool string(string_t& v) { return value(std::move(v)); }
  bool binary(binary_t&) { return false; }  // JSON text has none

  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& v) {
    Frame& frame = stack_.back();
    const bool fresh = frame.streamed ? seen_.insert(v).second : !frame.value.contains(v);
    if (!fresh) {
      throw Error(ErrorKind::corrupt, cat(name_, ": the key ", shown(v), " is given twice"),
                  "remove one of the two");
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

  json take() { return std::move(result_); }
  bool streamed() const { return streamed_; }

 private:
  struct Frame {
    json value;
    std::string key;        // of the member under way
    bool streamed = false;  // members are handed over, not kept
  };

  bool open(json container) {
    count();
    if (static_cast<int>(stack_.size()) >= max_depth_) {
      throw Error(ErrorKind::corrupt, cat(name_, ": nested deeper than ", max_depth_, " levels"),
                  "no model needs that: fetch the file again from its vendor");
    }
    const bool root = stack_.empty();
    const bool wanted =
        member_ && container.is_object() &&
        (inside_.empty() ? root : stack_.size() == 1 && stack_.back().key == inside_);
    streamed_ |= wanted;
    stack_.push_back({std::move(container), {}, wanted});
    return true;
  }

  bool close() {
    json done = std::move(stack_.back().value);
    stack_.pop_back();
    return add(std::move(done));
  }

  void count() {
    if (values_left_-- > 0) return;
    throw Error(ErrorKind::corrupt, cat(name_, ": holds more values than are read"),
                "this is not what it claims to be");
  }

  bool value(json v) {
    count();
    return add(std::move(v));
  }

  bool add(json v) {
    if (stack_.empty()) {
      result_ = std::move(v);
      return true;
    }
    Frame& frame = stack_.back();
    if (frame.streamed) {
      (*member_)(frame.key, std::move(v));
    } else if (frame.value.is_array()) {
      frame.value.push_back(std::move(v));
    } else {
      // While streaming, the rest of the root only needs its keys.
      const bool drop = member_ && stack_.size() == 1;
      frame.value[frame.key] = drop ? json() : std::move(v);
    }
    return true;
  }

  const std::string& name_;
  int max_depth_;
  std::uint64_t values_left_;
  std::string_view inside_;
  const JsonMember* member_;
  std::vector<Frame> stack_;
  std::unordered_set<std::string> seen_;
  bool streamed_ = false;
  json result_;
};

void check_size(std::uint64_t size, const std::string& name, const JsonLimits& limits) {
  if (size > limits.bytes) {
    throw Error(ErrorKind::corrupt,
                cat(name, " has ", size, " bytes; at most ", limits.bytes, " are read"),
                "this is not what it claims to be: fetch it again from its vendor");
  }
}

json parse(std::string_view text, const std::string& name, const JsonLimits& limits,
           std::string_view inside, const JsonMember* member) {
  check_size(text.size(), name, limits);
  Builder builder(name, limits, inside, member);
  json::sax_parse(text.begin(), text.end(), &builder);
  if (member && !builder.streamed()) {
    throw Error(ErrorKind::corrupt,
                inside.empty() ? cat(name, ": is not a JSON object")
                               : cat(name, ": has no object ", shown(inside)),
                "the file is damaged or something else: fetch it again");
  }
  return builder.take();
}

}  // namespace

json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  return parse(text, name, limits, {}, nullptr);
}

std::string read_text(const Source& source, const JsonLimits& limits) {
  check_size(source.size(), source.name(), limits);
  std::string text(static_cast<std::size_t>(source.size()), '\0');
  source.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

json read_json(const std::filesystem::path& path, const JsonLimits& limits) {
  const Source source = Source::open(path);
  return parse_json(read_text(source, limits), source.name(), limits);
}

void each_json_member(std::string_view text, const std::string& name, const JsonLimits& limits,
                      std::string_view inside, const JsonMember& member) {
  parse(text, name, limits, inside, &member);
}

}  // namespace mrrope
