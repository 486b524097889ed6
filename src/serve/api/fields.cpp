// SPDX-License-Identifier: Apache-2.0
#include "serve/api/fields.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <new>

#include "base/json.h"
#include "base/text.h"
#include "mrrope/error.h"

namespace mrrope::serve {

namespace {

constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopBytes = 1024;
constexpr std::size_t kMaxBiases = 4096;
constexpr std::size_t kMaxBiasBytes = 1024;
constexpr std::size_t kMaxGrammarBytes = std::size_t{256} << 10;
constexpr double kMaxBias = 1e6;

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

// What the readers of a body need while and after it is parsed: copies of parts of it, and what
// nlohmann allocates to destroy these.
std::size_t spare_for(std::size_t body) { return (std::size_t{1} << 20) + 16 * body; }

// A number, or false: never.
float bias_value(const ordered_json& value, const Value& field) {
  if (value.is_boolean() && !value.get<bool>()) return -std::numeric_limits<float>::infinity();
  if (!value.is_number() || !(std::fabs(value.get<double>()) <= kMaxBias)) {
    field.refuse(
        cat("must give each token a number up to ", kMaxBias, " or false, not ", shown(value)));
  }
  return value.get<float>();
}

Bias bias_of(const std::string& name, const ordered_json& value, const Value& field) {
  Bias bias{std::nullopt, name, bias_value(value, field)};
  Token token = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, token);
  if (rest == end && error == std::errc() && token >= 0) {
    bias.token = token;
  } else if (rest == end || name.empty() || name.size() > kMaxBiasBytes) {
    field.refuse(cat("names ", shown(name),
                     ": give the number of a token, from 0, or a text of up to ", kMaxBiasBytes,
                     " bytes"));
  }
  return bias;
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

// Complete before it has a value, so that its destructor runs whatever is thrown.
ParsedBody::ParsedBody(std::string_view body, const BodyLimits& limits) : ParsedBody() {
  // Where memory is short the request fails here, not when it can no longer fail. malloc() leaves
  // the reserve alone.
  const std::unique_ptr<void, decltype(&std::free)> spare(std::malloc(spare_for(body.size())),
                                                          &std::free);
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

ParsedBody::~ParsedBody() { release(root_); }

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

std::string Value::choice(std::initializer_list<const char*> choices) const {
  std::string list;
  for (const char* one : choices) {
    if (text() == one) return one;
    list += cat(list.empty() ? "" : ", ", one);
  }
  refuse(cat("is ", shown(*json_), ": choose one of ", list));
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

std::vector<Value> Value::entries(std::size_t most, const char* what) const {
  const std::size_t size = list().json().size();
  if (size > most) refuse(cat("lists ", size, " ", what, ": at most ", most));
  std::vector<Value> all;
  for (std::size_t i = 0; i < size; ++i) {
    all.emplace_back((*json_)[i], cat(path_, "[", i, "]"));
  }
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

void read_stop(const Value& stop, CompletionRequest& request) {
  const bool list = stop.json().is_array();
  for (const Value& entry : list ? stop.entries(kMaxStops, "strings") : std::vector{stop}) {
    if (!entry.json().is_string()) stop.refuse(cat("must hold strings, not ", shown(entry.json())));
    request.stop.push_back(entry.text());
    const std::size_t size = request.stop.back().size();
    if (size == 0 || size > kMaxStopBytes) {
      stop.refuse(cat("holds a string of ", size, " bytes: 1 to ", kMaxStopBytes));
    }
  }
}

void read_seed(const Value& seed, CompletionRequest& request) {
  const std::int64_t number = seed.whole(std::numeric_limits<std::int32_t>::min(),
                                         std::numeric_limits<std::uint32_t>::max());
  request.has_seed = number != -1;  // llama-server's way to ask for any
  if (request.has_seed) request.sampling.seed = static_cast<std::uint32_t>(number);
}

// OpenAI's object of tokens, or llama-server's list of pairs; in both a text stands for its tokens.
void read_bias(const Value& bias, CompletionRequest& request) {
  const ordered_json& list = bias.json();
  if (!list.is_object() && !list.is_array()) bias.refuse_type("an object of tokens and numbers");
  if (list.size() > kMaxBiases) {
    bias.refuse(cat("has ", list.size(), " entries: at most ", kMaxBiases));
  }
  if (list.is_object()) {
    for (const auto& [name, value] : list.items()) {
      request.bias.push_back(bias_of(name, value, bias));
    }
    return;
  }
  for (const ordered_json& pair : list) {
    if (!pair.is_array() || pair.size() != 2) {
      bias.refuse(cat("must list pairs of a token and a number, not ", shown(pair)));
    }
    if (!pair[0].is_string() && !pair[0].is_number_integer()) {
      bias.refuse(cat("names a token by its number or its text, not by ", shown(pair[0])));
    }
    const std::string name = pair[0].is_string() ? pair[0].get<std::string>() : pair[0].dump();
    request.bias.push_back(bias_of(name, pair[1], bias));
  }
}

void read_grammar(const Value& grammar, CompletionRequest& request) {
  std::string& text = request.sampling.grammar.text;
  text = grammar.text();
  if (text.size() > kMaxGrammarBytes) {
    grammar.refuse(cat("has ", text.size(), " bytes: at most ", kMaxGrammarBytes, " are read"));
  }
}

void read_schema(const Value& schema, const std::string& field, CompletionRequest& request) {
  if (!request.schema.empty()) {
    refuse(request.schema_field, cat("is given beside '", field, "': give one of them"));
  }
  static const ordered_json any = {{"type", "object"}};
  if (schema && !schema.json().is_object()) {
    refuse(field, cat("must be a JSON schema, not ", shown(schema.json())));
  }
  request.schema = (schema.json().empty() ? any : schema.json()).dump();
  request.schema_field = field;
}

void read_response_format(const Value& format, bool nested, CompletionRequest& request) {
  const Value type = format.object().at("type");
  if (!type || type.json() == "text") return;
  if (type.json() == "json_object") {
    return read_schema(format.at("schema"), format.path(), request);
  }
  if (type.json() != "json_schema") {
    format.refuse(
        cat("is of type ", shown(type.json()), ": choose text, json_object or json_schema"));
  }
  const Value holder = nested ? format.at("json_schema") : format;
  if (!holder.at("schema")) holder.refuse("must be an object with a schema");
  read_schema(holder.at("schema"), format.path(), request);
}

void check_form(const CompletionRequest& request) {
  const std::string options = request.dialect == Dialect::ollama ? "options." : "";
  const bool grammar = !request.sampling.grammar.text.empty();
  const bool schema = !request.schema.empty();
  const bool calls =
      !request.conversation.tools.empty() && request.conversation.tool_choice != "none";
  if (schema && grammar) {
    refuse(options + "grammar", "is given beside a JSON schema: give one of them");
  }
  if (request.sampling.ignore_end && (grammar || schema || calls)) {
    refuse(options + "ignore_eos",
           "is true, but an answer with a grammar, a schema or tool calls ends where that does");
  }
  if (calls && (grammar || schema)) {
    refuse(schema ? request.schema_field : options + "grammar",
           "is given beside tools: give one of them, or tool_choice none");
  }
}

}  // namespace mrrope::serve
